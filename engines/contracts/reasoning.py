"""Questions over the evidence, and answers whose every claim cites it."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from engines.contracts.base import Contract, Fact, FactRef, StageDocument

AnswerKind = Literal[
    "why", "next", "what_if", "order", "intent", "consistent", "summary", "chapters"
]
AnswerVerdict = Literal["accepted", "repaired", "rejected", "fallback"]

StructuredOutput = Literal["json_schema", "json_object", "none"]
"""What the server can enforce: a schema, any JSON object, or nothing."""

ANSWER_KINDS: tuple[AnswerKind, ...] = (
    "summary",
    "chapters",
    "why",
    "next",
    "what_if",
    "order",
    "intent",
    "consistent",
)


class EvidenceItem(Contract):
    """One line of the time-aligned evidence that a prompt shows."""

    ref: FactRef
    start_s: float
    end_s: float
    text: str
    saliency: float = Field(ge=0)
    untrusted: bool = False
    """True for words spoken or shown in the video: data, never instructions."""
    note: str = ""
    """What our own engines say of it (score, speaker, reason); always trusted."""
    flags: tuple[str, ...] = ()
    """Marks of the fact, and ``instruction_like_text`` where the words try to give orders."""


class Answer(Fact):
    """One claim with what it rests on; a task may give several."""

    kind: ClassVar = "answer"

    task: str
    answer_kind: AnswerKind
    question: str
    answer: dict[str, Any]
    """The structured answer as validated against the task's schema."""
    claim: str
    cites: tuple[FactRef, ...]
    verdict: AnswerVerdict
    engine: str
    model: str
    prompt: str
    """Name and version, e.g. ``why@1``."""
    prompt_hash: str
    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    anchor_id: str | None


class Contradiction(Fact):
    """Two facts that cannot both hold, and what was done about it."""

    kind: ClassVar = "contradiction"

    fact_a: FactRef
    fact_b: FactRef
    contradiction_kind: str
    resolution: str


class ReasonParams(Contract):
    """Everything that changes what the reasoning says."""

    engine: Literal["auto", "extractive", "openai"] = "auto"
    """``auto``: a model where the deployment names one, else the rules."""
    model: str = ""
    questions: tuple[AnswerKind, ...] = ANSWER_KINDS
    max_input_tokens: int = Field(default=3000, ge=200)
    temperature: float = Field(default=0.0, ge=0, le=2)
    seed: int = 0
    max_output_tokens: int = Field(default=800, ge=64)
    """First allowance for one answer of a model; doubled once when it was too small."""
    structured_output: StructuredOutput = "json_schema"
    timing_rules: tuple[str, ...] = ()
    """Corrective rules for confused action pairs, written by the evaluation; shown in prompts."""


class Anchor(Contract):
    """What a long video has established up to one scene; stands at the head of the next prompt."""

    anchor_id: str
    """Hash of all that follows; equal input gives an equal anchor."""
    session: str
    """Hash of the evidence that the whole answer rests on."""
    step: int = Field(ge=0)
    previous_hash: str
    """Hash of the previous step's output; empty at the first step."""
    constraint_version: str
    start_s: float
    end_s: float
    """The span of the scene on the asset clock."""
    summary: str
    """At most 128 tokens."""
    roles: tuple[tuple[str, str], ...] = ()
    """Who someone is, or what they may do, as (``who:aspect``, value)."""
    rolled_back: bool = False
    """True where the step drifted and the last good anchor was taken again."""


class ReasonUsage(Contract):
    """What the answers cost, failed and timed-out requests included."""

    requests: int = Field(ge=0)
    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    money: float | None = None
    """In the currency of the price that was given; None where no price was given."""
    models_returned: tuple[str, ...] = ()
    """Models as named by the server in its replies, not as asked for."""


class ReasonDocument(StageDocument):
    """Answers and the contradiction ledger."""

    answers: tuple[Answer, ...]
    contradictions: tuple[Contradiction, ...]
    engine: str
    model: str
    anchors: tuple[Anchor, ...] = ()
    usage: ReasonUsage | None = None
    """None for an engine that costs nothing."""
