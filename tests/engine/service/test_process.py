"""The engine's process: its one line, its socket, its end."""

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remask.engine.service.process import STALE_AFTER_S, remove_stale_sockets

SERVICE = Path(__file__).parents[2] / "lsp_server" / "fake_service.py"


class Service:
    """One process under test."""

    def __init__(self, folder: Path, *arguments: str, module: bool = False) -> None:
        self.socket = folder / "s.sock"
        command = ["-m", "remask.engine.service"] if module else [str(SERVICE)]
        self.process = subprocess.Popen(
            [sys.executable, *command, "--socket", str(self.socket), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def service(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Service]:
    service = Service(tmp_path, *getattr(request, "param", ()))
    yield service
    service.close()


def test_it_says_that_it_is_ready_on_a_socket_of_the_users_own(service: Service) -> None:
    line = service.line()
    assert (line["ready"], line["pid"], line["model"]) == (True, service.process.pid, "scripted")
    assert stat.S_IMODE(service.socket.stat().st_mode) == 0o600
    service.end_input()
    assert service.process.wait(10) == 0
    assert service.process.stdout is not None
    assert service.process.stdout.read() == b"", "nothing else is written there, whatever a library prints"
    assert not service.socket.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_usual_signals_end_it(service: Service, number: signal.Signals) -> None:
    service.line()
    service.process.send_signal(number)
    assert service.process.wait(10) == 0
    assert not service.socket.exists()


@pytest.mark.parametrize("service", [["--slow"]], indirect=True)
def test_the_end_of_its_input_ends_it_while_it_loads(service: Service) -> None:
    service.end_input()
    assert service.process.wait(10) == 0


def test_it_goes_on_while_somebody_else_wants_it_to_and_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    service = Service(tmp_path, "--shared-as", str(note))
    try:
        note.write_text(json.dumps({"pid": service.line()["pid"]}))
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(str(service.socket))
            guest.sendall(b"GET /v1/stay HTTP/1.1\r\nHost: engine\r\n\r\n")
            assert guest.recv(1_000).startswith(b"HTTP/1.1 200 ")
            service.end_input()
            assert service.line() == {"stays": True}
            assert note.exists()
        assert service.process.wait(20) == 0
        assert not note.exists()
        assert not service.socket.exists()
    finally:
        service.close()


def test_a_note_about_another_process_is_not_its_own_to_remove(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    service = Service(tmp_path, "--shared-as", str(note))
    try:
        assert service.line()["ready"]
        note.write_text('{"pid": 1}')
        service.end_input()
        assert service.process.wait(20) == 0
        assert note.exists()
    finally:
        service.close()


async def test_the_end_of_its_input_ends_it_while_the_model_hears_nothing(tmp_path: Path) -> None:
    service = await asyncio.to_thread(Service, tmp_path)
    try:
        await asyncio.to_thread(service.line)
        _, writer = await asyncio.open_unix_connection(service.socket)
        body = json.dumps({"document": "d", "language": "python", "prefix": "# deaf"}).encode()
        writer.write(b"POST /v1/complete HTTP/1.1\r\nHost: e\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        service.end_input()
        started = time.perf_counter()
        assert await asyncio.to_thread(service.process.wait, 10) == 0
        assert time.perf_counter() - started < 1.5
        writer.close()
    finally:
        service.close()


@pytest.mark.parametrize("service", [["--broken"]], indirect=True)
def test_a_model_that_cannot_be_loaded_is_said_and_an_exit_code(service: Service) -> None:
    error = service.line()["error"]
    assert error == {
        "kind": "ModelError",
        "message": "The weight shard is damaged.",
        "advice": "Install Remask again.",
    }
    assert service.process.wait(10) == 3
    assert service.process.stderr is not None
    assert b"Traceback" not in service.process.stderr.read()


def test_a_socket_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    service = Service(tmp_path / "missing")
    try:
        assert service.line()["error"]["kind"] == "StorageError"
        assert service.process.wait(10) == 5
    finally:
        service.close()


def test_only_the_sockets_of_the_dead_are_removed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as young:
        dead.bind(str(tmp_path / "dead.sock"))
        young.bind(str(tmp_path / "young.sock"))
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "alive.sock"))
        alive.listen()
        (tmp_path / "other.txt").touch()
        past = time.time() - STALE_AFTER_S - 60
        for name in ("dead.sock", "alive.sock", "other.txt"):
            os.utime(tmp_path / name, (past, past))
        remove_stale_sockets(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alive.sock", "other.txt", "young.sock"]


def test_torch_is_not_loaded_to_read_the_arguments() -> None:
    code = (
        "import sys, remask.engine.service.__main__, remask.engine.service.app, remask.engine.service.worker;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
