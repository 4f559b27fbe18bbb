"""From evidence to answers: scenes and anchors, the ledger, then each question in turn."""

import time

from engines.contracts.base import Coverage
from engines.contracts.causal import CausesDocument, EventsDocument
from engines.contracts.reasoning import (
    Anchor,
    Answer,
    AnswerKind,
    AnswerVerdict,
    EvidenceItem,
    ReasonDocument,
    ReasonParams,
)
from engines.errors import UsageError
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning import contradictions
from engines.reasoning.answers import EXTRACTIVE, by_rules, extractive_model
from engines.reasoning.asking import Asked, Asker
from engines.reasoning.chat import ChatClient, Spent
from engines.reasoning.contradictions import Ledger
from engines.reasoning.rules import RULES
from engines.reasoning.rules.case import Case
from engines.reasoning.stepping import Stepped, step_through


def reason(
    evidence: tuple[EvidenceItem, ...],
    causes: CausesDocument,
    events: EventsDocument,
    params: ReasonParams,
    client: ChatClient | None,
    deadline_s: float,
) -> ReasonDocument:
    """Answer every question of ``params`` over the evidence.

    Args:
        evidence: from ``engines.reasoning.evidence.build``, in time order.
        causes: tested edges; ``edge:n`` in the evidence refers to them.
        events: the timeline; ``event:n`` in the evidence refers to it.
        params: engine, questions, budget of input tokens, sampling.
        client: the model to ask; None for the rules. With the engine ``openai`` and no client the
            rules answer as a fallback and the document says so; ``auto`` takes what there is.
        deadline_s: seconds from now in which all questions must be answered; the rest is
            answered by rules, which need no time to speak of.

    Returns:
        Answers whose every claim cites evidence, the contradiction ledger, the anchors.

    Raises:
        UsageError: a client for the extractive engine.
    """
    if params.engine == EXTRACTIVE and client is not None:
        msg = "the extractive engine asks no model; client must be None"
        raise UsageError(msg)
    if params.engine == "auto":
        params = params.model_copy(update={"engine": "openai" if client else EXTRACTIVE})
    deadline_at = time.monotonic() + deadline_s
    ledger = contradictions.find(evidence, events, causes)
    case = Case(
        evidence=evidence,
        events=events,
        causes=_without(causes, ledger),
        contradictions=ledger.contradictions,
        consistency_checks=ledger.pairs_checked,
    )
    asker = Asker(case, params, client, deadline_at) if client is not None else None
    stepped = step_through(case, params, asker)
    return _Session(case, params, asker, stepped, ledger).document()


def _without(causes: CausesDocument, ledger: Ledger) -> CausesDocument:
    """Edges whose times cannot hold are frozen: no claim may rest on them."""
    frozen = {int(ref.split(":")[1]) for ref in ledger.frozen_edges}
    edges = tuple(
        edge.model_copy(update={"verdict": "not_causal", "reason": "contradicted; see the ledger"})
        if n in frozen
        else edge
        for n, edge in enumerate(causes.edges)
    )
    return causes.model_copy(update={"edges": edges})


class _Session:
    """The questions of one video, in turn."""

    def __init__(
        self,
        case: Case,
        params: ReasonParams,
        asker: Asker | None,
        stepped: Stepped,
        ledger: Ledger,
    ) -> None:
        self._case = case
        self._params = params
        self._asker = asker
        self._stepped = stepped
        self._ledger = ledger
        self._failures: dict[str, list[str]] = dict(stepped.failures)
        self._passing = stepped.passing
        self._give_up = stepped.give_up
        if params.engine != EXTRACTIVE and asker is None:
            self._failures["no client is configured"] = list(params.questions)
            self._passing = True

    def document(self) -> ReasonDocument:
        answers = [a for kind in self._params.questions for a in self._answer(kind)]
        answers += self._stepped.questions
        models = [a.model for a in answers if a.engine != EXTRACTIVE]
        usage = self._asker.client.usage() if self._asker else None
        return ReasonDocument(
            coverage=self._coverage(),
            degraded=self._degraded(),
            answers=tuple(answers),
            contradictions=(*self._ledger.contradictions, *self._stepped.contradictions),
            engine=self._params.engine,
            model=models[0] if models else extractive_model(),
            anchors=self._stepped.anchors,
            usage=usage,
            reusable=not self._passing,
        )

    def _degraded(self) -> tuple[str, ...]:
        fallen = [
            f"{reason} ({', '.join(dict.fromkeys(kinds))} answered by rules)"
            for reason, kinds in self._failures.items()
        ]
        thinned = self._asker.thinned if self._asker else None
        notes = [*fallen, *self._stepped.notes, *([thinned] if thinned else [])]
        return tuple(f"reason: {note}" for note in notes)

    def _coverage(self) -> Coverage:
        flagged = sum(INSTRUCTION_LIKE in i.flags for i in self._case.evidence)
        note = f"{flagged} facts hold instruction-like text; it was withheld" if flagged else None
        return Coverage(
            covered_s=max(0.0, self._case.end_s - self._case.start_s), skipped_s=0.0, reason=note
        )

    def _answer(self, kind: AnswerKind) -> tuple[Answer, ...]:
        anchor = self._stepped.anchors[-1] if self._stepped.anchors else None
        if self._asker is None or self._give_up is not None:
            wanted = self._params.engine != EXTRACTIVE
            if self._give_up is not None:
                self._failures.setdefault(self._give_up, []).append(kind)
            return self._rules(kind, "fallback" if wanted else "accepted", anchor, Spent())
        asked = self._asker.ask(kind, anchor)
        if asked.failure is None:
            return asked.answers
        self._note_failure(kind, asked)
        left = Spent() if asked.answers else asked.spent
        return (*asked.answers, *self._rules(kind, "fallback", anchor, left))

    def _note_failure(self, kind: AnswerKind, asked: Asked) -> None:
        failure = asked.failure or ""
        self._failures.setdefault(failure, []).append(kind)
        self._passing = self._passing or asked.passing
        if asked.stop_asking:
            self._give_up = failure

    def _rules(
        self, kind: AnswerKind, verdict: AnswerVerdict, anchor: Anchor | None, spent: Spent
    ) -> tuple[Answer, ...]:
        claims = RULES[kind](self._case)
        return tuple(
            by_rules(self._case, claim, verdict, anchor, Spent() if n else spent)
            for n, claim in enumerate(claims)
        )
