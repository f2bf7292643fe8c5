"""JSON-RPC messages over two byte streams. Knows frames, not what is in them.

A daemon thread reads, so the loop stays free and an exit never waits for a read that does not end. The loop writes; a
client that is gone is noticed there and is no error.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from typing import BinaryIO

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
_LENGTH = re.compile(rb"content-length:\s*(\d{1,18})\s*", re.IGNORECASE)
_SKIP_AT_ONCE = 1024 * 1024


def read_message(stream: BinaryIO) -> bytes | None:
    """The body of the next message, or None at the end of the stream. Lines that are no header are skipped."""
    length = -1
    while line := stream.readline():
        if found := _LENGTH.fullmatch(line.rstrip(b"\r\n")):
            length = int(found[1])
        elif not line.strip() and length >= 0:
            if length <= MAX_MESSAGE_BYTES:
                body = stream.read(length)
                return body if len(body) == length else None
            log.error("a message of %d bytes was skipped", length)
            _skip(stream, length)
            length = -1
    return None


def _skip(stream: BinaryIO, length: int) -> None:
    while length > 0 and (read := stream.read(min(length, _SKIP_AT_ONCE))):
        length -= len(read)


class MessageReader:
    """Reads messages in a thread and hands them to the loop; None is the last one."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="reader", daemon=True).start()

    async def next(self) -> bytes | None:
        """The next message, or None when there will be no more."""
        return await self._messages.get()

    def end(self) -> None:
        """Let `next` return None after what has come already."""
        self._messages.put_nowait(None)

    def _read(self) -> None:
        try:
            while (body := read_message(self._stream)) is not None:
                self._hand_over(body)
        except (OSError, ValueError):
            log.debug("standard input was closed")
        self._hand_over(None)

    def _hand_over(self, body: bytes | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._messages.put_nowait, body)


class MessageWriter:
    """What pygls writes to. Never raises: when the client is gone `on_lost` is called once."""

    def __init__(self, stream: BinaryIO, on_lost: Callable[[], None]) -> None:
        self._stream = stream
        self._on_lost = on_lost
        self._open = True

    def write(self, data: bytes) -> None:
        """Send one message, header included."""
        if not self._open:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError):
            self._open = False
            self._on_lost()

    def close(self) -> None:
        """Send nothing any more. The stream itself belongs to whoever opened it."""
        self._open = False
