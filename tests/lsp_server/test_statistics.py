"""Counted on this machine: numbers by day, no text, no names."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from remask.contract.places import cache_dir
from remask.lsp_server import statistics
from remask.lsp_server.document import Change, Document, Position
from remask.lsp_server.documents import Event
from remask.lsp_server.statistics import Statistics, kept_characters, read_statistics

TODAY = datetime.date.today().isoformat()


@pytest.fixture
def document() -> Document:
    return Document("file:///secret_name.py", "python", 1, "a\nb\nreturn width * height\n")


def test_what_is_kept_of_an_accepted_text() -> None:
    assert kept_characters("return a", "x\nreturn a\ny") == 8
    assert kept_characters("return a", "nothing of it") == 0
    assert 0 < kept_characters("return a + b", "return a") < 12
    assert kept_characters("", "x") == 0
    assert kept_characters("  \n", "x") == 3


def test_counts_are_added_up_in_one_file_without_text(document: Document) -> None:
    for _ in range(2):
        counted = Statistics()
        counted.offered(1, document.uri, Position(2, 0), ("return width * height",))
        counted.offered(1, document.uri, Position(2, 0), ("width * height",))  # the rest of it
        counted.shown(1)
        counted.accepted(1, 0, document)
        counted.heard(Event.CLOSED, document, [])
    counts = read_statistics()[TODAY]
    assert (counts["offered"], counts["shown"], counts["accepted"], counts["rejected"]) == (2, 2, 2, 0)
    assert counts["characters_kept"] == counts["characters_checked"] == 42
    text = (cache_dir() / "statistics.json").read_text()
    assert "width" not in text
    assert "secret" not in text
    assert sorted(path.name for path in cache_dir().glob("statistics*")) == ["statistics.json", "statistics.lock"]


def test_what_was_changed_half_a_minute_later_was_not_kept(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Statistics()
    counted.offered(1, document.uri, Position(2, 0), ("return width * height",))
    counted.accepted(1, 0, document)
    above = [Change("new\nlines\n", Position(0, 0), Position(0, 0))]
    document.apply(above, 2)
    counted.heard(Event.CHANGED, document, above)
    assert "characters_checked" not in counted.counts
    monkeypatch.setattr(statistics, "KEPT_AFTER_S", -1.0)
    erase = [Change("pass", Position(4, 0), Position(4, 99))]
    document.apply(erase, 3)
    counted.heard(Event.CHANGED, document, erase)
    assert (counted.counts["characters_checked"], counted.counts["characters_kept"]) == (21, 0)


def test_an_offer_that_another_replaces_was_rejected(document: Document) -> None:
    counted = Statistics()
    counted.offered(1, document.uri, Position(2, 0), ("a",))
    counted.offered(2, document.uri, Position(2, 0), ("b",))
    counted.partly(2, 1, "b")
    counted.offered(3, document.uri, Position(2, 0), ("c",))
    counted.heard(Event.CLOSED, document, [])
    assert read_statistics()[TODAY]["rejected"] == 2


def test_parts_of_what_is_left_of_an_offer_add_up(document: Document) -> None:
    """After a part was taken the editor gets the rest, with the same number, and counts from the start of that."""
    counted = Statistics()
    counted.offered(1, document.uri, Position(2, 0), ("größe😀(bar, baz)", "other"))
    counted.partly(1, 5, "größe😀(bar, baz)")
    counted.partly(1, 7, "größe😀(bar, baz)")
    assert counted.counts["characters_accepted"] == 6, "characters, not units"
    counted.partly(1, 5, "(bar, baz)")
    counted.partly(1, 4, " baz)")
    assert (counted.counts["partly"], counted.counts["characters_accepted"]) == (1, 15)
    counted.partly(1, 99, "something else")
    counted.accepted(1, 0, document)
    assert counted.counts["characters_accepted"] == 16


def test_an_item_that_is_taken_after_a_newer_request_was_accepted(document: Document) -> None:
    """An editor asks again when the user looks for others, and may go back to the first."""
    counted = Statistics()
    counted.offered(1, document.uri, Position(2, 0), ("a",))
    counted.offered(2, document.uri, Position(2, 0), ("b", "c"))
    counted.accepted(1, 0, document)
    counted.offered(3, document.uri, Position(2, 0), ("d",))
    counted.flush()
    counts = read_statistics()[TODAY]
    assert (counts["offered"], counts["accepted"], counts["rejected"]) == (3, 1, 1)


def test_turned_off_it_writes_nothing(document: Document) -> None:
    counted = Statistics(enabled=False)
    counted.offered(1, document.uri, Position(2, 0), ("a",))
    counted.flush()
    assert read_statistics() == {}


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "[" * 100_000, '{"days": 5}', '{"days": {"x": 5}}'),
        *('{"days": {"x": {"offered": []}}}', '{"days": {"x": {"offered": 1e999}}}'),
    ],
)
def test_a_damaged_file_counts_as_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(content)
    assert read_statistics(tmp_path / "s.json") == {}


def test_a_disk_that_refuses_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(statistics, "_add", refuse)
    counted = Statistics()
    counted.offered(1, "d", Position(0, 0), ("a",))
    counted.flush()
    assert not (cache_dir() / "statistics.json").exists()


def test_a_full_disk_leaves_nothing_half_written_and_the_counts_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, text: str, *_: object) -> None:
        path.write_bytes(text[:3].encode())
        raise OSError(28, "No space left on device")

    counted = Statistics()
    counted.offered(1, "d", Position(0, 0), ("a",))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", half)
        counted.flush()
    assert [path.name for path in cache_dir().glob("statistics*")] == ["statistics.lock"]
    counted.flush()
    counted.flush()
    assert read_statistics()[TODAY]["offered"] == 1


def test_another_server_that_writes_is_not_waited_for() -> None:
    fcntl = pytest.importorskip("fcntl")
    counted = Statistics()
    counted.offered(1, "d", Position(0, 0), ("a",))
    with (cache_dir() / "statistics.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        counted.flush()
        assert read_statistics() == {}
    counted.flush()
    assert read_statistics()[TODAY]["offered"] == 1


def test_old_days_go() -> None:
    old = {f"2000-01-{day:02}": {"offered": 1} for day in range(1, 29)}
    many = {f"{year}-{month:02}-01": {"offered": 1} for year in range(1950, 1990) for month in range(1, 13)}
    (cache_dir() / "statistics.json").write_text(json.dumps({"days": {**old, **many}}))
    counted = Statistics()
    counted.offered(1, "d", Position(0, 0), ("a",))
    counted.flush()
    assert len(read_statistics()) == statistics.KEPT_DAYS
    assert TODAY in read_statistics()
