"""A real HTTP server that speaks chat completions, and misbehaves on demand.

    with LlmStub([answer({"a": 1}), status(503), late(0.5)]) as stub:
        ... ask stub.base_url ...
        assert len(stub.requests) == 3

Each request takes the next scripted reply; the last one is repeated for ever. What was asked,
and when, is kept.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Scripted = Callable[["Seen"], "Reply"]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    at_s: float
    """On the monotonic clock."""
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n".join(m["content"] for m in self.body["messages"])


@dataclass(frozen=True)
class Reply:
    """What the server sends back."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


def completion(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    model: str = "stub-model-2",
    usage: dict[str, int] | None = None,
    delay_s: float = 0.0,
    refusal: str | None = None,
) -> Scripted:
    """A chat completion with this text and stop reason."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if refusal is not None:
        message["refusal"] = refusal
    body = {
        "id": "stub",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        body["usage"] = usage
    return lambda _: Reply(content=json.dumps(body).encode(), delay_s=delay_s)


def answer(value: Any, **more: Any) -> Scripted:
    """A whole completion that is this value as JSON."""
    return completion(json.dumps(value), **more)


def status(code: int, *, retry_after: str | None = None) -> Scripted:
    """An error of the server."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda _: Reply(status=code, content=b'{"error": "stub"}', headers=headers)


def raw(content: bytes) -> Scripted:
    """Status 200 with a body that may be anything."""
    return lambda _: Reply(content=content)


class LlmStub:
    """The server, in a thread of its own, on a free port of the loopback."""

    def __init__(self, script: Sequence[Scripted]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self.requests: list[Seen] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, seen: Seen) -> Reply:
        with self._lock:
            self.requests.append(seen)
            scripted = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return scripted(seen)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                seen = Seen(
                    at_s=time.monotonic(),
                    headers={k.lower(): v for k, v in self.headers.items()},
                    body=json.loads(self.rfile.read(length)),
                )
                reply = stub._next(seen)
                time.sleep(reply.delay_s)
                try:
                    self.send_response(reply.status)
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(reply.content)))
                    self.end_headers()
                    self.wfile.write(reply.content)
                except OSError:
                    # The client has gone: that is what a late reply is for.
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                """Keep quiet: pytest shows what matters."""

        return Handler
