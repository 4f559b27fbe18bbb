"""What each template may use: frozen, complete, checked before anything is rendered."""

from pydantic import Field

from engines.contracts.base import Contract
from engines.contracts.reasoning import Anchor, EvidenceItem


class EvidenceVariables(Contract):
    """What every template has: the evidence, its bounds, and the schema of the reply."""

    evidence: tuple[EvidenceItem, ...]
    start_s: float
    end_s: float
    """Bounds of the video on the asset clock; a time outside them is refused."""
    reply_schema: str
    """JSON Schema of the reply, as text."""
    anchor: Anchor | None = None
    timing_rules: tuple[str, ...] = ()
    """Corrective rules for confused action pairs."""


class QuestionVariables(EvidenceVariables):
    """One question over the evidence."""

    question: str = Field(min_length=1)


class HopVariables(QuestionVariables):
    """A multi-hop question: what rules have already extracted and decided."""

    hops: tuple[str, ...]
    """Deterministic results, one line each; the model words them, it does not decide them."""


class ContextVariables(QuestionVariables):
    """A question whose when, who and what have been found, with that part of the event graph."""

    when: str
    who: str
    what: str
    context: tuple[EvidenceItem, ...]


class RobustVariables(QuestionVariables):
    """A question over words that were normalised, with the standard terms to use."""

    glossary: tuple[tuple[str, str], ...]
    """(word as found, standard term), only for words that occur."""


class SceneVariables(EvidenceVariables):
    """One scene of a long video."""

    scene: int = Field(ge=1)
    num_scenes: int = Field(ge=1)
