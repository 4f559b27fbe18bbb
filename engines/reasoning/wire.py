"""The chat-completions wire: one HTTP exchange, bounded in time and size, and what came back."""

import json
import time
from dataclasses import dataclass, replace
from typing import Self

import httpx
from pydantic import BaseModel, JsonValue

from engines.contracts.reasoning import StructuredOutput
from engines.reasoning.pacing import retry_after_s

_OK = 200
_TOO_MANY = 429
_MAYBE_BILLED = frozenset({408, 500, 502, 504})
"""Statuses behind which the model may have worked all the same."""
_RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_NOT_ON_THE_WIRE = frozenset(
    {"title", "default", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}
)
"""Schema words that strict modes refuse; the reply is validated against all of them here."""


class TransportError(Exception):
    """No usable HTTP reply."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        maybe_billed: bool,
        status: int | None = None,
        wait_s: float | None = None,
    ) -> None:
        """Keep what decides about the next request."""
        super().__init__(message)
        self.retryable = retryable
        self.maybe_billed = maybe_billed
        self.status = status
        self.wait_s = wait_s
        self.input_tokens = 0
        self.output_tokens = 0

    @property
    def rate_limited(self) -> bool:
        """Whether the server asked everyone to slow down."""
        return self.status == _TOO_MANY


@dataclass(frozen=True)
class Completion:
    """What a reply with status 200 says; not yet believed."""

    text: str
    stop_reason: str | None
    refusal: bool
    model: str
    input_tokens: int | None
    """None where the server does not count."""
    output_tokens: int | None
    malformed: str | None = None
    """Why the reply is no chat completion; None where it is one."""

    def counted(self, input_tokens: int, output_tokens: int) -> Self:
        """The same with both counts known."""
        return replace(self, input_tokens=input_tokens, output_tokens=output_tokens)


def exchange(
    http: httpx.Client,
    url: str,
    content: bytes,
    headers: dict[str, str],
    *,
    timeout_s: float,
    max_bytes: int,
) -> Completion:
    """Send one request and read the reply.

    Args:
        http: connection pool; does not follow redirects.
        url: of the endpoint.
        content: the JSON body.
        headers: beyond those of the pool.
        timeout_s: for the whole exchange; a server that drips is cut off at the next piece.
        max_bytes: a longer reply is refused.

    Raises:
        TransportError: no connection, no reply in time, another status than 200, too long.
    """
    deadline_at = time.monotonic() + timeout_s
    try:
        with http.stream(
            "POST", url, content=content, headers=headers, timeout=httpx.Timeout(timeout_s)
        ) as response:
            body = _read(response, deadline_at, max_bytes)
    except httpx.TimeoutException as error:
        msg = f"no answer within {timeout_s:.1f} s"
        sent = not isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
        raise TransportError(msg, retryable=True, maybe_billed=sent) from error
    except httpx.TransportError as error:
        msg = f"the server cannot be reached: {type(error).__name__}"
        sent = not isinstance(error, httpx.ConnectError)
        raise TransportError(msg, retryable=True, maybe_billed=sent) from error
    if response.status_code != _OK:
        raise _refused(response)
    return _completion(body)


def _read(response: httpx.Response, deadline_at: float, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            msg = f"the reply is longer than {max_bytes} bytes"
            raise TransportError(msg, retryable=False, maybe_billed=True)
        if time.monotonic() > deadline_at:
            msg = "the reply was not whole at the deadline"
            raise TransportError(msg, retryable=False, maybe_billed=True)
    return b"".join(parts)


def _refused(response: httpx.Response) -> TransportError:
    """An error for a status; the body is left out, since it may echo what was sent."""
    status = response.status_code
    return TransportError(
        f"the server answered with status {status}",
        retryable=status in _RETRYABLE,
        maybe_billed=status in _MAYBE_BILLED,
        status=status,
        wait_s=retry_after_s(response.headers.get("Retry-After")),
    )


def _completion(body: bytes) -> Completion:
    try:
        reply = json.loads(body)
    except ValueError:
        return _malformed("the reply is not JSON")
    if not isinstance(reply, dict):
        return _malformed("the reply is not a chat completion")
    usage = reply.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    known = Completion(
        text="",
        stop_reason=None,
        refusal=False,
        model=str(reply.get("model") or ""),
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
    )
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return replace(known, malformed="the reply holds no choice")
    text = message.get("content")
    stop_reason = choice.get("finish_reason")
    return replace(
        known,
        text=text if isinstance(text, str) else "",
        stop_reason=stop_reason if isinstance(stop_reason, str) else None,
        refusal=bool(message.get("refusal")),
    )


def _malformed(reason: str) -> Completion:
    return Completion("", None, False, "", None, None, malformed=reason)


def _count(value: object) -> int | None:
    """A count of tokens, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def response_format(
    mode: StructuredOutput, name: str, reply_type: type[BaseModel]
) -> JsonValue | None:
    """The field that asks the server to hold the reply to JSON; None for a server without."""
    if mode == "none":
        return None
    if mode == "json_object":
        return {"type": "json_object"}
    schema = _on_the_wire(reply_type.model_json_schema())
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "strict": True, "schema": schema},
    }


def _on_the_wire(schema: JsonValue, *, names: bool = False) -> JsonValue:
    """The schema without the words that strict modes refuse; names of fields are no such words."""
    if isinstance(schema, list):
        return [_on_the_wire(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _on_the_wire(value, names=key in {"properties", "$defs"} and not names)
        for key, value in schema.items()
        if names or key not in _NOT_ON_THE_WIRE
    }
