"""A client for any OpenAI-compatible server: vLLM, Triton's front end, a hosted one.

It owns all retries of an answer (engines.reasoning.calls): at most four requests whatever goes
wrong, none where trying again cannot help. Each has the time that is left of the deadline, never
a fixed time-out. What it may cost is taken from the budget before it is sent.
"""

import hashlib
import json
import ssl
from functools import lru_cache
from typing import Literal, Self, TypeVar

import httpx
from pydantic import BaseModel, JsonValue, SecretStr

from engines.contracts.reasoning import ReasonUsage, StructuredOutput
from engines.errors import UsageError
from engines.reasoning.calls import Call
from engines.reasoning.chat import ChatReply, ChatRequest
from engines.reasoning.ledger import Budget, Ledger
from engines.reasoning.pacing import Pacer
from engines.reasoning.tokens import estimate
from engines.reasoning.wire import Completion, TransportError, exchange, response_format

M = TypeVar("M", bound=BaseModel)

MAX_REPLY_BYTES = 4 * 2**20
_TOKENS_PER_MESSAGE = 4
"""Role and separators that a chat template puts around each message."""
_REASK = (
    "Your last reply could not be used: {reason}. Reply again, with one JSON object that fits the "
    "schema and nothing before or after it."
)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """The system's certificates, read once: a client is made for every video."""
    return ssl.create_default_context()


class OpenAIClient:
    """Answers questions in JSON through ``POST {base_url}/chat/completions``."""

    engine = "openai"

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: SecretStr | None = None,
        structured_output: StructuredOutput = "json_schema",
        limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        ledger: Ledger | None = None,
        pacer: Pacer | None = None,
        proxy: str | None = None,
    ) -> None:
        """Open a connection pool; nothing is sent yet.

        Args:
            base_url: with the version part, e.g. ``http://127.0.0.1:8000/v1``.
            model: as the server names it.
            api_key: sent as a bearer token; never logged.
            structured_output: what the server can enforce.
            limit_field: hosted servers renamed the field that limits the output.
            ledger: budget of this video; None for the default limits on tokens.
            pacer: shared pace; None for one within this client.
            proxy: address of an HTTP proxy; the environment's is not used.

        Raises:
            UsageError: an address that is not http or https, or no model.
        """
        if not base_url.startswith(("http://", "https://")) or not model:
            msg = f"a language model needs an http(s) address and a name: {base_url!r}, {model!r}"
            raise UsageError(msg)
        self.model = model
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._mode: StructuredOutput = structured_output
        self._limit_field = limit_field
        self._ledger = ledger or Ledger(Budget())
        self._pacer = pacer or Pacer()
        self._returned: dict[str, None] = {}
        headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        # A redirect would carry the key and the evidence to a server that nobody named.
        self._http = httpx.Client(
            headers=headers, follow_redirects=False, trust_env=False, proxy=proxy, verify=_tls()
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def usage(self) -> ReasonUsage:
        """Everything spent on the ledger, and the models that the server said it is."""
        return ReasonUsage(
            requests=self._ledger.requests,
            input_tokens=self._ledger.input_tokens,
            output_tokens=self._ledger.output_tokens,
            money=self._ledger.money,
            models_returned=tuple(self._returned),
        )

    def ask(self, request: ChatRequest, reply_type: type[M], deadline_s: float) -> ChatReply[M]:
        """Answer within ``deadline_s`` seconds from now, in at most four requests.

        Raises:
            ChatFailedError: no whole, schema-valid answer; says why and what it cost.
        """

        def send(max_tokens: int, invalid: str | None, remaining_s: float) -> Completion:
            return self._send(self._body(request, reply_type, max_tokens, invalid), remaining_s)

        call = Call(send, reply_type, request.max_output_tokens, deadline_s, self._pacer)
        return call.run()

    def _body(
        self,
        request: ChatRequest,
        reply_type: type[BaseModel],
        max_tokens: int,
        invalid: str | None,
    ) -> dict[str, JsonValue]:
        """The request's JSON; a second ask adds one message and repeats nothing of the reply."""
        messages: list[JsonValue] = [
            {"role": m.role, "content": m.content} for m in request.messages
        ]
        if invalid is not None:
            messages.append({"role": "user", "content": _REASK.format(reason=invalid)})
        body: dict[str, JsonValue] = {
            "model": self.model,
            "messages": messages,
            "temperature": request.temperature,
            "seed": request.seed,
            self._limit_field: max_tokens,
            "stream": False,
        }
        shape = response_format(self._mode, request.schema_name, reply_type)
        return body if shape is None else {**body, "response_format": shape}

    def _send(self, body: dict[str, JsonValue], remaining_s: float) -> Completion:
        """One request; the budget is reserved before and settled after."""
        content = json.dumps(body, sort_keys=True).encode()
        asked_tokens, limit = input_tokens_of(body), int(str(body[self._limit_field]))
        reservation = self._ledger.reserve(asked_tokens, limit)
        headers = {
            "Content-Type": "application/json",
            # The same body is the same request: a server that knows the key bills it once.
            "Idempotency-Key": hashlib.sha256(content).hexdigest(),
        }
        try:
            completion = exchange(
                self._http,
                self._url,
                content,
                headers,
                timeout_s=remaining_s,
                max_bytes=MAX_REPLY_BYTES,
            )
        except TransportError as error:
            # What may have been worked on may have been billed: its reservation stays spent.
            if error.maybe_billed:
                error.input_tokens, error.output_tokens = asked_tokens, limit
            else:
                self._ledger.settle(reservation, 0, 0)
            raise
        said = (completion.input_tokens, completion.output_tokens)
        used_in = said[0] if said[0] is not None else asked_tokens
        used_out = said[1] if said[1] is not None else estimate(completion.text)
        self._ledger.settle(reservation, used_in, used_out)
        if completion.model:
            self._returned.setdefault(completion.model)
        return completion.counted(used_in, used_out)


def input_tokens_of(body: dict[str, JsonValue]) -> int:
    """Estimated tokens of a request's messages, schema included where one is sent."""
    messages = body["messages"]
    count = len(messages) if isinstance(messages, list) else 0
    text = json.dumps([messages, body.get("response_format", "")], ensure_ascii=False)
    return estimate(text) + _TOKENS_PER_MESSAGE * count
