"""One engine for several servers: who starts it, who joins it, and what happens when one of them goes.

Report 28: a gigabyte for each editor is what people complain of most.
"""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import psutil
import pytest
from shared_engines import Start, answers, complete, is_not_answered, two

from remask.contract.errors import StorageError
from remask.contract.messages import Reason
from remask.contract.places import config_dir
from remask.lsp_server import engine_share
from remask.lsp_server.engine_client import ProcessEngine, open_engine
from remask.lsp_server.engine_link import EngineLink
from remask.lsp_server.engine_share import Place
from remask.lsp_server.options import ServerOptions
from remask.lsp_server.status import EngineState


async def test_two_servers_share_a_process(start: Start) -> None:
    owner, guest = await two(start)
    assert owner.pid == guest.pid
    pid = owner.pid
    await guest.close()
    assert pid
    assert psutil.pid_exists(pid)
    assert (await complete(owner)).text == "pass"


async def test_all_that_start_at_once_end_with_one_process(start: Start) -> None:
    engines = [start() for _ in range(4)]
    results = await asyncio.gather(*(complete(engine) for engine in engines))
    assert {result.text for result in results} == {"pass"}
    assert len({engine.pid for engine in engines}) == 1


async def test_an_engine_that_dies_is_started_again_for_all(start: Start) -> None:
    owner, guest = await two(start)
    assert owner.pid
    psutil.Process(owner.pid).kill()
    await answers(owner)
    await answers(guest)
    assert owner.pid == guest.pid


async def test_other_options_and_other_choices_are_another_engine(start: Start, tmp_path: Path) -> None:
    owner, other = start(), start("--note", str(tmp_path / "note"))
    await answers(owner)
    await answers(other)
    assert owner.pid != other.pid
    (config_dir() / "model").write_text("another")
    third = start()
    await answers(third)
    assert third.pid not in (owner.pid, other.pid)


async def test_a_server_of_another_version_has_another_engine(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they say to each other may have changed; an update goes on while windows are open."""
    owner, guest = await two(start)
    monkeypatch.setattr(engine_share, "own_version", lambda: "99.0")
    newer, newest = await two(start)
    assert newer.pid == newest.pid != owner.pid
    await owner.close()
    await answers(guest)
    await answers(newer)
    assert newer.pid != guest.pid


async def test_an_idle_engine_is_put_away_for_all_and_comes_back(start: Start) -> None:
    owner, guest = start(unload_after_s=0.05), start(unload_after_s=0.05)
    unloaded = [asyncio.Event(), asyncio.Event()]
    for engine, event in zip((owner, guest), unloaded, strict=True):
        engine.on_state = lambda state, _, event=event: event.set() if state is EngineState.UNLOADED else None
    await asyncio.gather(complete(owner), complete(guest))
    async with asyncio.timeout(20):
        await asyncio.gather(*(event.wait() for event in unloaded))
    results = await asyncio.gather(complete(owner), complete(guest))
    assert {result.reason for result in results} == {Reason.END}


async def test_a_guest_turns_away_from_an_engine_that_is_stuck(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, guest = await two(start)
    with monkeypatch.context() as patch:
        patch.setattr("remask.lsp_server.engine_client.LATE_S", 0.05)
        patch.setattr("remask.lsp_server.engine_client.STUCK_S", 0.0)
        await is_not_answered(guest)
    await answers(guest)
    assert guest.pid != owner.pid
    assert owner.pid
    assert psutil.pid_exists(owner.pid), "it is not the guest's to end"


@pytest.mark.parametrize("left", ["nothing", "a dead process", "a process that was stopped"])
async def test_a_server_that_is_stopped_holds_nobody_up(
    start: Start, monkeypatch: pytest.MonkeyPatch, left: str, sleeper: psutil.Popen
) -> None:
    """It holds the lock, and will not say when its engine is ready, or that it is gone."""
    monkeypatch.setattr("remask.lsp_server.engine_source.LOOK_AGAIN_S", 0.001)
    guest = start()
    owner = Place(guest._source.command)
    assert owner.take()
    if left == "a dead process":
        owner.publish("no.sock", 99_999_999)
    if left == "a process that was stopped":
        sleeper.suspend()
        owner.publish("no.sock", sleeper.pid, loading=True)
    await answers(guest)
    assert guest.pid
    owner.leave()


async def test_an_engine_that_loads_is_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remask.lsp_server.engine_source.LOOK_AGAIN_S", 0.001)
    monkeypatch.setattr("remask.lsp_server.engine_source.QUIET_LOOKS", 3)
    owner, guest = start("--slow"), start("--slow")
    owner.start()
    while owner.pid is None:  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.001)
    looks, is_loading = [], Place.is_loading
    monkeypatch.setattr(Place, "is_loading", lambda place: (looks.append(is_loading(place)), looks[-1])[1])
    guest.start()
    async with asyncio.timeout(20):
        while len(looks) < 50:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert all(looks)
    assert guest.pid is None


@pytest.mark.parametrize(
    ("method", "error"),
    [("take", PermissionError()), ("take", StorageError("The folder is a link.")), ("publish", PermissionError())],
    ids=["no lock", "no folder", "no note"],
)
async def test_where_no_place_can_be_had_each_server_has_its_own(
    start: Start, monkeypatch: pytest.MonkeyPatch, method: str, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Place, method, refuse)
    owner, guest = await two(start)
    assert owner.pid != guest.pid


async def test_where_the_file_system_has_no_locks_each_server_has_its_own(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    owner, guest = await two(start)
    assert owner.pid != guest.pid


async def test_an_engine_whose_socket_is_gone_is_left_for_another(start: Start) -> None:
    """A session's end empties the folder of sockets, and clean-ups of temporary files do."""
    owner, guest = await two(start)
    old = owner.pid
    assert owner._source.run is not None
    path = owner._source.run.socket
    for engine in (owner, guest):
        assert engine._link is not None
        await engine._link.close()  # what is connected stays so
        engine._link = EngineLink(path)
    os.unlink(path)
    assert (await complete(guest)).reason is Reason.ENGINE
    await answers(guest)
    assert (await complete(owner)).reason is Reason.ENGINE
    await answers(owner)
    assert old not in (owner.pid, guest.pid)


@pytest.mark.parametrize("strength", ["", ":2", ":-0.5"])
def test_a_steering_vector_that_was_trained_again_has_another_engine(strength: str, tmp_path: Path) -> None:
    vector = tmp_path / "v.safetensors"
    vector.write_bytes(b"one")
    place = Place(["remask", "--steer", f"{vector}{strength}"])
    keys = [place._key(), place._key()]
    vector.write_bytes(b"another")
    assert keys[0] == keys[1] != place._key()


def test_sharing_is_an_option() -> None:
    shared, own = open_engine(ServerOptions()), open_engine(ServerOptions(share_engine=False))
    assert isinstance(shared, ProcessEngine)
    assert isinstance(own, ProcessEngine)
    assert shared._source._place is not None
    assert own._source._place is None
