"""What the reasoning needs of a language model, whichever server it stands behind."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, Field

from engines.contracts.base import Contract
from engines.contracts.reasoning import ReasonUsage
from engines.errors import EngineError
from engines.prompts.render import Message

M = TypeVar("M", bound=BaseModel)


class ChatFailedError(EngineError):
    """A model gave no usable answer; the rules answer in its place.

    ``stop_asking`` says whether the next question would fail alike (server away, budget spent,
    deadline passed); ``spent`` is what the attempt cost all the same.
    """

    def __init__(self, message: str, *, stop_asking: bool, spent: "Spent") -> None:
        """Say why, what to do with the other questions, and what it cost."""
        super().__init__(message)
        self.stop_asking = stop_asking
        self.spent = spent


class Spent(Contract):
    """Tokens of every request made for one answer, timed-out and refused ones included."""

    requests: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)


class ChatRequest(Contract):
    """One logical question; the client may need several requests for it."""

    messages: tuple[Message, ...] = Field(min_length=1)
    schema_name: str
    max_output_tokens: int = Field(ge=1)
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class ChatReply(Generic[M]):
    """A whole, parsed, schema-valid answer."""

    value: M
    model: str
    """As returned by the server."""
    repaired: bool
    """True where the JSON needed light repair."""
    spent: Spent


class ChatClient(Protocol):
    """A language model that answers in JSON."""

    engine: str
    model: str

    def ask(self, request: ChatRequest, reply_type: type[M], deadline_s: float) -> ChatReply[M]:
        """Answer within ``deadline_s`` seconds from now.

        Raises:
            ChatFailedError: no whole, schema-valid answer within deadline, budget and requests.
        """
        ...

    def usage(self) -> ReasonUsage:
        """Everything spent through this client so far."""
        ...
