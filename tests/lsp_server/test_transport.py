"""Frames on a byte stream, whole and broken."""

import io

import pytest

from remask.lsp_server import transport
from remask.lsp_server.transport import MessageWriter, read_message


def bodies(data: bytes) -> list[bytes]:
    stream = io.BytesIO(data)
    return list(iter(lambda: read_message(stream), None))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"Content-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"content-length:2\r\nContent-Type: x\r\n\r\n{}Content-Length: 1\r\n\r\n1", [b"{}", b"1"]),
        (b"Content-Length: 2\n\n{}", [b"{}"]),
        (b"noise\r\n\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: x\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", [b"", b"1"]),
        (b"Content-Length: 5\r\n\r\n{}", []),  # the stream ends too early
        (b"Content-Length: 4\r\n\r\n\xf0\x9f\x98\x80", ["😀".encode()]),
    ],
)
def test_messages_are_read(data: bytes, expected: list[bytes]) -> None:
    assert bodies(data) == expected


def test_a_message_that_is_too_large_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_MESSAGE_BYTES", 3)
    assert bodies(b"Content-Length: 4\r\n\r\n1234Content-Length: 2\r\n\r\n{}") == [b"{}"]


def test_a_client_that_is_gone_is_told_of_once() -> None:
    lost: list[int] = []
    stream = io.BytesIO()
    writer = MessageWriter(stream, lambda: lost.append(1))
    writer.write(b"a")
    assert stream.getvalue() == b"a"
    stream.close()
    writer.write(b"b")
    writer.write(b"c")
    assert lost == [1]


def test_a_closed_writer_writes_nothing() -> None:
    stream = io.BytesIO()
    writer = MessageWriter(stream, lambda: None)
    writer.close()
    writer.write(b"a")
    assert stream.getvalue() == b""
