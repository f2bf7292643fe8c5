"""The engine's HTTP face: four routes on a local socket. Knows messages and errors, never the model.

POST /v1/complete   a CompletionRequest  ->  a CompletionResult; with ?drafts=1 one JSON object a line: {"draft": text}
                    while it is being written, then {"result": CompletionResult} or {"error": ...}
POST /v1/close      {"document": name}   ->  {}; what was read of the document goes to disk, and out of memory
GET  /v1/health     what runs here and how busy it is
GET  /v1/stay       headers, and then nothing: as long as the connection is open the engine does not leave with the
                    process that has started it

Every error is `{"error": {"kind", "message", "advice"}}`. Closing the connection cancels the request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from remask.contract.errors import EngineError, InputError, RemaskError, StorageError
from remask.contract.messages import MAX_DOCUMENT_BYTES, CompletionRequest
from remask.engine.service.guests import Guests
from remask.engine.service.worker import ModelWorker

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 6 * MAX_DOCUMENT_BYTES + 65_536
"""JSON writes a control character of one byte as six."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(worker: ModelWorker, description: Mapping[str, Any], guests: Guests | None = None) -> web.Application:
    """The application around a started worker; `description` is what its model said of itself.

    It counts in `guests` who wants the engine to stay.
    """
    guests = Guests() if guests is None else guests
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors_as_json])

    async def complete(request: web.Request) -> web.StreamResponse:
        wanted = CompletionRequest.from_json(await request.read())
        if request.query.get("drafts"):
            return await _stream(request, worker, wanted)
        result = await worker.complete(wanted)
        return web.json_response(result.to_dict())

    async def close(request: web.Request) -> web.Response:
        await worker.close_document(_document(await request.read()))
        return web.json_response({})

    async def health(_: web.Request) -> web.Response:
        return web.json_response(
            {
                "ready": True,
                "pid": os.getpid(),
                "busy": worker.busy,
                "waiting": worker.waiting,
                "completed": worker.completed,
                "skipped": worker.skipped,
                "saved": worker.saved,
                "guests": len(guests),
                **description,
            }
        )

    async def stay(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        with guests.one_more():
            await response.prepare(request)
            await asyncio.Event().wait()  # until the connection is closed, or the engine leaves
        return response

    app.router.add_post("/v1/complete", complete)
    app.router.add_post("/v1/close", close)
    app.router.add_get("/v1/health", health)
    app.router.add_get("/v1/stay", stay)
    return app


async def _stream(request: web.Request, worker: ModelWorker, wanted: CompletionRequest) -> web.StreamResponse:
    """Answer line by line: the newest draft whenever the client has read the one before, the result at the end."""
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    drafts: asyncio.Queue[str] = asyncio.Queue()
    work = asyncio.ensure_future(worker.complete(wanted, drafts.put_nowait))
    try:
        while not work.done():
            newest = asyncio.ensure_future(drafts.get())
            try:
                await asyncio.wait((work, newest), return_when=asyncio.FIRST_COMPLETED)
            finally:  # the client may have gone
                newest.cancel()
            if newest.done() and not newest.cancelled():
                text = newest.result()
                while not drafts.empty():
                    text = drafts.get_nowait()
                await response.write(_line({"draft": text}))
        try:
            await response.write(_line({"result": work.result().to_dict()}))
        except RemaskError as error:
            await response.write(_line(error_body(error)))
    finally:
        work.cancel()
    await response.write_eof()
    return response


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _document(body: bytes) -> str:
    try:
        document = json.loads(body)["document"]
    except (ValueError, TypeError, KeyError, RecursionError):
        document = None
    if not isinstance(document, str):
        raise InputError("The request names no document.")
    return document


def error_body(error: RemaskError) -> dict[str, dict[str, str]]:
    """What a client is told about an error."""
    return {"error": error.to_dict()}


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.json_response(error_body(InputError(f"{error.reason}.")), status=error.status)
    except RemaskError as error:
        return web.json_response(error_body(error), status=_status(error))
    except Exception as error:
        log.error("a request failed: %s", type(error).__name__)
        return web.json_response(error_body(EngineError("The engine failed on this request.")), status=500)


def _status(error: RemaskError) -> int:
    if isinstance(error, InputError):
        return 400
    return 507 if isinstance(error, StorageError) else 500
