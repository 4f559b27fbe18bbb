"""The schema of a model's reply, and what a claim must hold before it is believed.

A claim is rejected if it cites nothing or an id that was not shown, lies outside the video, holds
a number that its evidence does not, names a cause without a tested edge, or carries what has no
place in an answer (a web address, the prompt's own words). Rejected text is not stored: a claim
that was planted must not reach a reader by being refused.
"""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engines.contracts.base import Contract
from engines.contracts.causal import CausesDocument
from engines.contracts.reasoning import AnswerKind, EvidenceItem
from engines.prompts.normalise import words
from engines.prompts.render import RenderedPrompt
from engines.prompts.untrusted import INSTRUCTION_LIKE, instruction_like

Outcome = Literal["answered", "nothing_found", "not_enough_evidence"]

CAUSAL_KINDS: frozenset[AnswerKind] = frozenset({"why", "next", "what_if"})
TIME_TOLERANCE_S = 0.05
MAX_CLAIMS = 24
_LEAK_WORDS = 8
_ADDRESS = re.compile(r"https?://|www\.|\b[\w-]+\.(?:com|org|net|io|ru|cn|dev)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ReplyClaim(_Reply):
    """One claim as the model words it."""

    text: str = Field(min_length=1, max_length=600)
    cites: list[str]
    start_s: float
    end_s: float
    confidence: float = Field(ge=0, le=1)


class Reply(_Reply):
    """What every question's template asks for."""

    outcome: Outcome
    claims: list[ReplyClaim] = Field(max_length=MAX_CLAIMS)


class ReplyRole(_Reply):
    """Who someone is, or what they may do, as the model reads it."""

    who: str = Field(min_length=1, max_length=60)
    aspect: Literal["is", "may"]
    value: str = Field(min_length=1, max_length=60)


class SceneReply(Reply):
    """What the template of a scene step asks for."""

    roles: list[ReplyRole] = Field(max_length=12)


class Shown(Contract):
    """What the model was shown, against which its claims are held."""

    kind: AnswerKind
    evidence: tuple[EvidenceItem, ...]
    start_s: float
    end_s: float
    causal_edges: frozenset[str]
    system_text: str

    @classmethod
    def of(
        cls,
        kind: AnswerKind,
        evidence: tuple[EvidenceItem, ...],
        bounds: tuple[float, float],
        causes: CausesDocument,
        prompt: RenderedPrompt,
    ) -> "Shown":
        """Collect what the checks need."""
        causal = (f"edge:{n}" for n, e in enumerate(causes.edges) if e.verdict == "causal")
        system = " ".join(m.content for m in prompt.messages if m.role == "system")
        return cls(
            kind=kind,
            evidence=evidence,
            start_s=bounds[0],
            end_s=bounds[1],
            causal_edges=frozenset(causal),
            system_text=system,
        )


def objection(claim: ReplyClaim, shown: Shown, *, dated: bool = True) -> str | None:
    """Why a claim is rejected, in words that repeat none of its text; None if it stands.

    Args:
        claim: as the model worded it.
        shown: what it was shown.
        dated: False leaves its times to the guard of engines.reasoning.anchors.
    """
    by_ref = {i.ref: i for i in shown.evidence}
    unknown = [ref for ref in claim.cites if ref not in by_ref]
    if not claim.cites:
        return "no citation"
    if unknown:
        return f"{len(unknown)} cited ids are not in the evidence"
    if dated and claim.end_s < claim.start_s:
        return f"ends at {claim.end_s:.2f} s before it starts at {claim.start_s:.2f} s"
    low, high = shown.start_s - TIME_TOLERANCE_S, shown.end_s + TIME_TOLERANCE_S
    if dated and not (low <= claim.start_s and claim.end_s <= high):
        return f"{claim.start_s:.2f}-{claim.end_s:.2f} s lies outside the video"
    if shown.kind in CAUSAL_KINDS and not shown.causal_edges & set(claim.cites):
        return "names a cause without citing a tested causal edge"
    return _objection_to_text(claim, [by_ref[ref] for ref in claim.cites], shown.system_text)


def _objection_to_text(
    claim: ReplyClaim, cited: list[EvidenceItem], system_text: str
) -> str | None:
    if _ADDRESS.search(claim.text):
        return "holds a web address"
    if instruction_like(claim.text):
        return "reads like instructions to a model"
    if all(INSTRUCTION_LIKE in item.flags for item in cited):
        return "rests on withheld text alone"
    if _repeats(claim.text, system_text):
        return "repeats the prompt"
    allowed = {_plain_number(n) for item in cited for n in _numbers_of(item)}
    extra = [n for n in _NUMBER.findall(claim.text) if _plain_number(n) not in allowed]
    if extra:
        return f"{len(extra)} numbers are not in the cited evidence"
    return None


def _numbers_of(item: EvidenceItem) -> list[str]:
    """Numbers a claim about this item may hold: its words, note, and its times as shown."""
    times = [f"{t:.{digits}f}" for t in (item.start_s, item.end_s) for digits in (0, 1, 2)]
    return [*_NUMBER.findall(f"{item.text} {item.note}"), *times]


def _plain_number(number: str) -> str:
    plain = number.replace(",", ".")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _repeats(text: str, system_text: str) -> bool:
    """Whether eight words in a row come from the prompt's own rules."""
    said, rules = words(text), words(system_text)
    runs = {rules[n : n + _LEAK_WORDS] for n in range(len(rules) - _LEAK_WORDS + 1)}
    return any(said[n : n + _LEAK_WORDS] in runs for n in range(len(said) - _LEAK_WORDS + 1))
