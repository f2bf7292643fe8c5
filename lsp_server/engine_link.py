"""HTTP with one running engine, over its socket. Knows messages, never the process behind the socket."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from remask.contract.errors import EngineError, RemaskError
from remask.contract.messages import CompletionRequest, CompletionResult

if TYPE_CHECKING:
    import aiohttp

OnDraft = Callable[[str], None]
_LINE_LIMIT = 4 * 1024 * 1024


class LostError(EngineError):
    """There was no answer: the process behind the socket is gone or going."""


class EngineLink:
    """A door to the engine that listens on `socket`. Its methods raise EngineError, or what it answers."""

    def __init__(self, socket: str) -> None:
        import aiohttp

        self._session: aiohttp.ClientSession = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path=socket),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
            read_bufsize=_LINE_LIMIT,
        )

    async def complete(self, request: CompletionRequest, on_draft: OnDraft | None = None) -> CompletionResult:
        """Fill the hole; `on_draft` gets the text as far as it stands."""
        body = request.to_json().encode()
        if on_draft is None:
            return _read(await self._post("/v1/complete", body))
        return _read(await self._stream(body, on_draft))

    async def close_document(self, document: str) -> None:
        """Tell the engine that a document was closed."""
        _raise_error(await self._post("/v1/close", json.dumps({"document": document}).encode()))

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _post(self, path: str, body: bytes) -> Any:
        import aiohttp

        try:
            # aiohttp sends a stream piece by piece
            async with self._session.post(f"http://engine{path}", data=io.BytesIO(body)) as response:
                return await response.json()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise LostError(f"The engine does not answer ({type(error).__name__}).") from error

    async def _stream(self, body: bytes, on_draft: OnDraft) -> Any:
        import aiohttp

        try:
            async with self._session.post("http://engine/v1/complete?drafts=1", data=io.BytesIO(body)) as response:
                async for line in response.content:
                    values = json.loads(line)
                    if not isinstance(values, dict) or "draft" not in values:
                        return values.get("result", values) if isinstance(values, dict) else values
                    on_draft(str(values["draft"]))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise LostError(f"The engine does not answer ({type(error).__name__}).") from error
        raise LostError("The engine stopped in the middle of an answer.")


def _read(values: object) -> CompletionResult:
    _raise_error(values)
    try:
        return CompletionResult.from_dict(values)  # type: ignore[arg-type]
    except (RemaskError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise EngineError("The engine answered nonsense.") from error


def _raise_error(values: object) -> None:
    if isinstance(values, dict) and isinstance(error := values.get("error"), dict):
        raise RemaskError.from_dict(error)
