"""One answer from a server: its few requests, and what each failure changes about the next."""

import logging
import random
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from engines.reasoning.chat import ChatFailedError, ChatReply, Spent
from engines.reasoning.ledger import BudgetSpentError
from engines.reasoning.pacing import PaceError, Pacer
from engines.reasoning.parse import InvalidReplyError, parse_object
from engines.reasoning.wire import Completion, TransportError

log = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)
Send = Callable[[int, str | None, float], Completion]
"""(allowance of output tokens, why the last reply was invalid, seconds left) to a reply."""

MAX_REQUESTS = 4
"""For one answer: retries, the second ask and the bigger allowance all count."""
FIRST_BACKOFF_S = 0.5
GROWTH_AFTER_CUT = 2
WHOLE = frozenset({"stop", "eos", "end_turn", "stop_sequence"})
"""Stop reasons that mean: the model had finished."""
CUT = "length"
_FAULTS_OF_THE_SET_UP = frozenset({401, 403, 404, 405, 410})
"""Statuses that the next question would meet as well."""


class Call(Generic[M]):
    """The one owner of retries; nothing above or below it asks again."""

    def __init__(
        self, send: Send, reply_type: type[M], max_tokens: int, deadline_s: float, pacer: Pacer
    ) -> None:
        """Prepare; the clock of the deadline starts now."""
        self._send = send
        self._reply_type = reply_type
        self._max_tokens = max_tokens
        self._deadline_at = time.monotonic() + deadline_s
        self._pacer = pacer
        self._enlarged = False
        self._invalid: str | None = None
        self._spent = Spent()
        self._random = random.SystemRandom()

    def run(self) -> ChatReply[M]:
        """Ask until there is an answer, or no request could help any more.

        Raises:
            ChatFailedError: says why.
        """
        last: TransportError | None = None
        for number in range(MAX_REQUESTS):
            try:
                self._pacer.wait(self._remaining_s())
                completion = self._send(self._max_tokens, self._invalid, self._remaining_s())
            except (PaceError, BudgetSpentError) as error:
                raise self._failed(str(error), stop_asking=True) from error
            except TransportError as error:
                last = error
                self._count(error.input_tokens, error.output_tokens)
                self._after_transport(error, number)
                continue
            self._count(completion.input_tokens or 0, completion.output_tokens or 0)
            reply = self._read(completion)
            if reply is not None:
                return reply
        reason = str(last) if last else f"the reply is invalid: {self._invalid}"
        msg = f"{reason}; {MAX_REQUESTS} requests made, no more are allowed"
        raise self._failed(msg, stop_asking=last is not None)

    def _remaining_s(self) -> float:
        left_s = self._deadline_at - time.monotonic()
        if left_s <= 0:
            msg = "the deadline has passed"
            raise self._failed(msg, stop_asking=True)
        return left_s

    def _after_transport(self, error: TransportError, number: int) -> None:
        """Slow down before the next request, or give up where none could help."""
        if not error.retryable:
            away = error.status in _FAULTS_OF_THE_SET_UP
            raise self._failed(str(error), stop_asking=away) from error
        backoff_s = FIRST_BACKOFF_S * 2**number * (1 + self._random.random())
        if error.rate_limited:
            self._pacer.hold(error.wait_s if error.wait_s is not None else backoff_s)
            return
        if number + 1 == MAX_REQUESTS:
            return
        wait_s = max(backoff_s, error.wait_s or 0.0)
        if wait_s >= self._remaining_s():
            msg = f"{error}; no time is left to ask again"
            raise self._failed(msg, stop_asking=True) from error
        time.sleep(wait_s)

    def _read(self, completion: Completion) -> ChatReply[M] | None:
        """The answer, or None where another request may bring it; the stop reason comes first."""
        if completion.stop_reason == CUT:
            if self._enlarged:
                msg = f"the answer is cut even at {self._max_tokens} tokens"
                raise self._failed(msg, stop_asking=False)
            self._enlarged = True
            self._max_tokens *= GROWTH_AFTER_CUT
            log.info("answer cut by the limit; asking once more with %d tokens", self._max_tokens)
            return None
        if completion.refusal or completion.stop_reason == "content_filter":
            msg = "the model refused to answer"
            raise self._failed(msg, stop_asking=False)
        try:
            return self._parse(completion)
        except InvalidReplyError as error:
            if self._invalid is not None:
                msg = f"two replies were invalid; the last: {error}"
                raise self._failed(msg, stop_asking=False) from error
            self._invalid = str(error)
            log.info("invalid reply (%s); asking once more", error)
            return None

    def _parse(self, completion: Completion) -> ChatReply[M]:
        if completion.malformed is not None:
            raise InvalidReplyError(completion.malformed)
        if completion.stop_reason not in WHOLE:
            msg = f"it stopped for the reason {completion.stop_reason!r}"
            raise InvalidReplyError(msg)
        parsed = parse_object(completion.text)
        if parsed.repaired:
            log.warning("reply of %s needed light JSON repair", completion.model)
        try:
            value = self._reply_type.model_validate_json(parsed.as_json())
        except ValidationError as error:
            raise InvalidReplyError(_first_fault(error)) from error
        return ChatReply(
            value=value, model=completion.model, repaired=parsed.repaired, spent=self._spent
        )

    def _count(self, input_tokens: int, output_tokens: int) -> None:
        self._spent = Spent(
            requests=self._spent.requests + 1,
            input_tokens=self._spent.input_tokens + input_tokens,
            output_tokens=self._spent.output_tokens + output_tokens,
        )

    def _failed(self, message: str, *, stop_asking: bool) -> ChatFailedError:
        return ChatFailedError(message, stop_asking=stop_asking, spent=self._spent)


def _first_fault(error: ValidationError) -> str:
    """Where the schema is broken, without the value: it may be text that was planted."""
    fault = error.errors(include_input=False, include_url=False)[0]
    # Names of fields are the schema's own but for unknown ones, which a reply may choose freely.
    known = fault["type"] != "extra_forbidden"
    place = ".".join(str(part) for part in (fault["loc"] if known else fault["loc"][:-1]))
    return f"{fault['type'].replace('_', ' ')} at {place or 'the top'}"
