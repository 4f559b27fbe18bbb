"""Receives what object stores announce, and makes runs of it: ``python -m flows.receiver``.

A notification is written to the inbox before it is acknowledged, and only then told to Prefect
as an event. So whatever fails later, the row is there, and ``reconcile`` finds it again. Objects
whose notification never came are found by listing the bucket.

Prefect itself is not imported: this process stays small, and its event endpoint is plain HTTP.
"""

import hmac
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engines.errors import ReelgraphError, UsageError
from flows.uploads import Uploads
from tasks.objects.notifications import SOURCES
from tasks.resources import Resources
from tasks.settings import Settings, get_settings

MAX_BODY_BYTES = 4 * 2**20
"""More than a thousand records; a notification has one."""

RECONCILE_EVERY_S = 15.0
SWEEP_EVERY_S = 300.0

logger = logging.getLogger("reelgraph.receiver")


def make_app(uploads: Uploads, token: str) -> Starlette:
    """The HTTP side: ``POST /notify/<source>`` with a bearer token, ``GET /health``.

    Args:
        uploads: what to do with a notification.
        token: required in the header ``Authorization``.
    """

    async def notify(request: Request) -> Response:
        if not _authorised(request, token):
            return JSONResponse({"error": "wrong or no bearer token"}, status_code=401)
        parse = SOURCES.get(request.path_params["source"])
        if parse is None:
            known = ", ".join(sorted(SOURCES))
            return JSONResponse({"error": f"unknown source; known: {known}"}, status_code=404)
        try:
            body = await _json_object(request)
            parsed = parse(body)
            outcomes = await run_in_threadpool(uploads.receive, parsed)
        except UsageError as error:
            logger.warning("refused a notification: %s", error)
            return JSONResponse({"error": str(error)}, status_code=400)
        except ReelgraphError as error:
            # Not acknowledged: the store sends it again.
            logger.warning("not accepted: %s", error)
            return JSONResponse({"error": str(error)}, status_code=503)
        return JSONResponse({"outcomes": outcomes, "skipped": parsed.skipped})

    async def health(_request: Request) -> Response:
        return JSONResponse({"ok": True})

    return Starlette(
        routes=[
            Route("/notify/{source}", notify, methods=["POST"]),
            Route("/health", health),
        ]
    )


def main() -> None:
    """Serve until a signal comes, reconciling in the background."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    settings = get_settings()
    if settings.receiver_url is None or settings.receiver_token is None:
        msg = "set REELGRAPH_RECEIVER_URL and REELGRAPH_RECEIVER_TOKEN, or run `reelgraph up`"
        raise UsageError(msg)
    uploads = Uploads.of(Resources(settings))
    for work, every_s in ((uploads.reconcile, RECONCILE_EVERY_S), (uploads.sweep, SWEEP_EVERY_S)):
        threading.Thread(target=_repeat, args=(work, every_s), daemon=True).start()
    address = urlsplit(settings.receiver_url)
    uvicorn.run(
        make_app(uploads, settings.receiver_token.get_secret_value()),
        host=address.hostname or "127.0.0.1",
        port=address.port or 80,
        log_level="warning",
        access_log=False,
    )


def reconcile(settings: Settings) -> int:
    """One pass over the inbox; returns how many runs it started."""
    return Uploads.of(Resources(settings)).reconcile()


def _repeat(work: Callable[[], int], every_s: float) -> None:
    """Do it for ever; a service that is away now is there again later."""
    while True:
        try:
            work()
        except ReelgraphError as error:
            logger.warning("%s put off: %s", work.__name__, error)
        time.sleep(every_s)


def _authorised(request: Request, token: str) -> bool:
    """MinIO sends its token after ``Bearer`` unless the token has a scheme of its own."""
    given = request.headers.get("authorization", "").encode()
    return hmac.compare_digest(given, f"Bearer {token}".encode())


async def _json_object(request: Request) -> dict[str, Any]:
    """The body of a request.

    Raises:
        UsageError: too long, not JSON, or not an object.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            msg = f"a notification of more than {MAX_BODY_BYTES} bytes"
            raise UsageError(msg)
    try:
        value = json.loads(body)
    except ValueError as error:
        msg = f"not JSON: {error}"
        raise UsageError(msg) from error
    if not isinstance(value, dict):
        msg = f"a JSON object is expected, not {type(value).__name__}"
        raise UsageError(msg)
    return value


if __name__ == "__main__":
    main()
