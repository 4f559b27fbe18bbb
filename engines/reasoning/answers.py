"""Claims to answer rows: the one place where spans, flags and verdicts are put together."""

from engines.contracts.reasoning import Anchor, Answer, AnswerVerdict
from engines.contracts.time import TimeSpan
from engines.errors import EngineError
from engines.prompts.render import RenderedPrompt
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.chat import Spent
from engines.reasoning.contradictions import CLOCK_HZ
from engines.reasoning.replies import ReplyClaim, Shown
from engines.reasoning.rules import revision
from engines.reasoning.rules.case import Case, Claim

EXTRACTIVE = "extractive"
RULES_NAME = "rules"


def extractive_model() -> str:
    """Name and revision of the rules, in place of a model's."""
    return f"{RULES_NAME}-{revision()[:16]}"


def case_flags(case: Case) -> tuple[str, ...]:
    """``instruction_like_text`` where any line of the evidence tries to give orders."""
    return (INSTRUCTION_LIKE,) if any(INSTRUCTION_LIKE in i.flags for i in case.evidence) else ()


def by_rules(
    case: Case, claim: Claim, verdict: AnswerVerdict, anchor: Anchor | None, spent: Spent
) -> Answer:
    """An answer of the extractive engine.

    Raises:
        EngineError: a rule made a claim that cites what is not there; a fault in the rule.
    """
    unknown = [ref for ref in claim.cites if ref not in case.by_ref]
    answered = claim.answer.get("outcome") == "answered"
    if unknown or (answered and not claim.cites):
        msg = f"rule {claim.answer_kind} cites {unknown or 'nothing'}"
        raise EngineError(msg)
    return Answer(
        span=_span(claim.start_s, claim.end_s),
        flags=case_flags(case),
        task=claim.answer_kind,
        answer_kind=claim.answer_kind,
        question=claim.question,
        answer=dict(claim.answer),
        claim=claim.text,
        cites=claim.cites,
        verdict=verdict,
        engine=EXTRACTIVE,
        model=extractive_model(),
        prompt=f"{RULES_NAME}/{claim.answer_kind}@1",
        prompt_hash=revision(),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        anchor_id=anchor.anchor_id if anchor else None,
    )


class ModelSource:
    """Where a model's answers come from: asked once, shared by every claim of one reply."""

    def __init__(
        self,
        *,
        question: str,
        engine: str,
        model: str,
        prompt: RenderedPrompt,
        anchor: Anchor | None,
    ) -> None:
        """Keep what every row of one reply has in common."""
        self.question = question
        self.engine = engine
        self.model = model
        self.prompt = prompt
        self.anchor = anchor

    def answer(
        self, case: Case, shown: Shown, claim: ReplyClaim, verdict: AnswerVerdict, spent: Spent
    ) -> Answer:
        """A claim that stands; its span is as claimed, held to the video."""
        structured = {
            "outcome": "answered",
            "confidence": claim.confidence,
            "start_s": claim.start_s,
            "end_s": claim.end_s,
        }
        start_s = min(max(claim.start_s, case.start_s), case.end_s)
        end_s = min(max(claim.end_s, start_s), case.end_s)
        return self._row(
            case,
            shown,
            structured,
            claim.text,
            tuple(dict.fromkeys(claim.cites)),
            (start_s, end_s),
            verdict,
            spent,
        )

    def rejected(self, case: Case, shown: Shown, reasons: list[str], spent: Spent) -> Answer:
        """One row that says how many claims were refused and why, without their text."""
        text = (
            f"{len(reasons)} claims of the model were rejected: {'; '.join(sorted(set(reasons)))}."
        )
        structured = {
            "outcome": "rejected",
            "reasons": sorted(set(reasons)),
            "claims": len(reasons),
        }
        return self._row(
            case, shown, structured, text, (), (case.start_s, case.end_s), "rejected", spent
        )

    def without_claims(
        self, case: Case, shown: Shown, outcome: str, verdict: AnswerVerdict, spent: Spent
    ) -> Answer:
        """The model looked and found nothing, or could not say: two different results."""
        said = (
            "Nothing of the kind was found" if outcome == "nothing_found" else "Not enough evidence"
        )
        text = f"{said} in {len(shown.evidence)} facts."
        structured = {"outcome": outcome, "facts": len(shown.evidence)}
        return self._row(
            case, shown, structured, text, (), (case.start_s, case.end_s), verdict, spent
        )

    def _row(
        self,
        case: Case,
        shown: Shown,
        structured: dict[str, object],
        text: str,
        cites: tuple[str, ...],
        span_s: tuple[float, float],
        verdict: AnswerVerdict,
        spent: Spent,
    ) -> Answer:
        return Answer(
            span=_span(*span_s),
            flags=case_flags(case),
            task=shown.kind,
            answer_kind=shown.kind,
            question=self.question,
            answer=structured,
            claim=text,
            cites=cites,
            verdict=verdict,
            engine=self.engine,
            model=self.model,
            prompt=self.prompt.prompt,
            prompt_hash=self.prompt.prompt_hash,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            anchor_id=self.anchor.anchor_id if self.anchor else None,
        )


def _span(start_s: float, end_s: float) -> TimeSpan:
    return TimeSpan.from_seconds(start_s, end_s, rate_hz=CLOCK_HZ)
