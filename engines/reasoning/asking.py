"""Asking a model the questions: prompts over fitted evidence, claims checked, rules in reserve.

The model words and picks; it does not decide. What it may call a cause has been tested before,
what it cites is checked, and where it fails the rules answer and say so.
"""

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from engines.contracts.reasoning import (
    Anchor,
    Answer,
    AnswerKind,
    AnswerVerdict,
    EvidenceItem,
    ReasonParams,
)
from engines.prompts.normalise import synonyms, words
from engines.prompts.render import PromptTemplate, RenderedPrompt
from engines.prompts.variables import (
    ContextVariables,
    EvidenceVariables,
    HopVariables,
    QuestionVariables,
    RobustVariables,
    SceneVariables,
)
from engines.reasoning.answers import ModelSource
from engines.reasoning.chat import ChatClient, ChatFailedError, ChatRequest, Spent
from engines.reasoning.context import subgraph
from engines.reasoning.evidence import fit, kind_of, line_tokens
from engines.reasoning.replies import Reply, SceneReply, Shown, objection
from engines.reasoning.rules.case import Case
from engines.reasoning.rules.causal import hop_lines

log = logging.getLogger(__name__)

QUESTIONS: dict[AnswerKind, str] = {
    "summary": "What is in this video?",
    "chapters": "What are its chapters?",
    "why": "Why do the things happen that were found to have a cause?",
    "next": "What happens next, after the end?",
    "what_if": "What if a cause were taken away?",
    "order": "In what order do things happen?",
    "intent": "What is it for?",
    "consistent": "Is it consistent?",
}


@dataclass
class Asked:
    """What came of asking: rows, or why there are none, and what it cost."""

    answers: tuple[Answer, ...] = ()
    spent: Spent = field(default_factory=Spent)
    failure: str | None = None
    """Set where the rules must answer instead."""
    passing: bool = False
    """Whether another run may go better: the model gave no answer at all."""
    stop_asking: bool = False


@dataclass(frozen=True)
class Asker:
    """One video's questions to one model."""

    case: Case
    params: ReasonParams
    client: ChatClient
    deadline_at: float
    """On the monotonic clock."""
    monotonic: Callable[[], float] = time.monotonic

    def ask(self, kind: AnswerKind, anchor: Anchor | None) -> Asked:
        """Ask one kind of question and check every claim of the reply."""
        evidence = self._evidence
        prompt = self._prompt(kind, evidence, anchor)
        try:
            reply = self.client.ask(
                self._request(kind, prompt), Reply, self.deadline_at - self.monotonic()
            )
        except ChatFailedError as error:
            return Asked(
                spent=error.spent,
                failure=str(error),
                passing=True,
                stop_asking=error.stop_asking,
            )
        source = ModelSource(
            question=QUESTIONS[kind],
            engine=self.client.engine,
            model=reply.model,
            prompt=prompt,
            anchor=anchor,
        )
        bounds = (self.case.start_s, self.case.end_s)
        shown = Shown.of(kind, evidence, bounds, self.case.causes, prompt)
        return self._judge(source, shown, reply.value, reply.repaired, reply.spent)

    @cached_property
    def _evidence(self) -> tuple[EvidenceItem, ...]:
        """What every whole-video question shows, within the budget."""
        return fit(self._thin, self.params.max_input_tokens)

    @cached_property
    def _thin(self) -> tuple[EvidenceItem, ...]:
        """All evidence, but of a long video's keyframes only as many as half the budget holds.

        Keyframes are always kept within a scene; over a whole long video they alone could be more
        than a server takes, and the anchors already tell what was in each scene.
        """
        frames = [i for i in self.case.evidence if kind_of(i.ref) == "keyframe"]
        cost = sum(line_tokens(i) for i in frames)
        room = self.params.max_input_tokens // 2
        if cost <= room:
            return self.case.evidence
        step = math.ceil(cost / room)
        kept = {i.ref for i in frames[::step]}
        return tuple(i for i in self.case.evidence if kind_of(i.ref) != "keyframe" or i.ref in kept)

    @property
    def thinned(self) -> str | None:
        """How many keyframes the whole-video questions left out; None where all were shown."""
        left_out = len(self.case.evidence) - len(self._thin)
        return f"{left_out} keyframes were not shown to the model" if left_out else None

    def _judge(
        self, source: ModelSource, shown: Shown, reply: Reply, repaired: bool, spent: Spent
    ) -> Asked:
        """Claims that stand become rows; if none of several stands, the rules must answer."""
        verdict: AnswerVerdict = "repaired" if repaired else "accepted"
        objections = [(claim, objection(claim, shown)) for claim in reply.claims]
        good = [claim for claim, reason in objections if reason is None]
        bad = [reason for _, reason in objections if reason is not None]
        rows: list[Answer] = []
        for claim in good:
            rows.append(source.answer(self.case, shown, claim, verdict, Spent() if rows else spent))
        if bad:
            log.warning("%s: %d claims rejected: %s", shown.kind, len(bad), sorted(set(bad)))
            rows.append(source.rejected(self.case, shown, bad, Spent() if rows else spent))
        if good:
            return Asked(answers=tuple(rows), spent=spent)
        if bad:
            failure = f"every claim was rejected ({'; '.join(sorted(set(bad)))})"
            return Asked(answers=tuple(rows), spent=spent, failure=failure)
        if reply.outcome == "answered":
            return Asked(spent=spent, failure="the model says it answered, with no claim")
        row = source.without_claims(self.case, shown, reply.outcome, verdict, spent)
        return Asked(answers=(row,), spent=spent)

    def scene(
        self, items: tuple[EvidenceItem, ...], number: int, count: int, anchor: Anchor | None
    ) -> tuple[SceneReply | None, Asked]:
        """One step over a scene of a long video; claims that do not stand are taken out."""
        template = PromptTemplate.load("scene")
        start_s = min(i.start_s for i in items)
        end_s = max(i.end_s for i in items)
        prompt = template.render(
            SceneVariables(
                evidence=items,
                start_s=start_s,
                end_s=end_s,
                reply_schema=schema_text(SceneReply),
                anchor=anchor,
                timing_rules=self.params.timing_rules,
                scene=number,
                num_scenes=count,
            )
        )
        try:
            reply = self.client.ask(
                self._request("scene", prompt), SceneReply, self.deadline_at - self.monotonic()
            )
        except ChatFailedError as error:
            failed = Asked(
                spent=error.spent,
                failure=str(error),
                passing=True,
                stop_asking=error.stop_asking,
            )
            return None, failed
        # Times are left to the guard, which freezes them and asks; all else is checked here.
        bounds = (self.case.start_s, self.case.end_s)
        shown = Shown.of("summary", items, bounds, self.case.causes, prompt)
        standing = [c for c in reply.value.claims if objection(c, shown, dated=False) is None]
        return reply.value.model_copy(update={"claims": standing}), Asked(spent=reply.spent)

    def _request(self, name: str, prompt: RenderedPrompt) -> ChatRequest:
        return ChatRequest(
            messages=prompt.messages,
            schema_name=name,
            max_output_tokens=self.params.max_output_tokens,
            temperature=self.params.temperature,
            seed=self.params.seed,
        )

    def _prompt(
        self, kind: AnswerKind, evidence: tuple[EvidenceItem, ...], anchor: Anchor | None
    ) -> RenderedPrompt:
        template = PromptTemplate.load(kind)
        question = QuestionVariables(
            evidence=evidence,
            start_s=self.case.start_s,
            end_s=self.case.end_s,
            reply_schema=schema_text(Reply),
            anchor=anchor,
            timing_rules=self.params.timing_rules,
            question=QUESTIONS[kind],
        )
        return template.render(self._variables(template, question))

    def _variables(
        self, template: PromptTemplate, question: QuestionVariables
    ) -> EvidenceVariables:
        common = {name: getattr(question, name) for name in QuestionVariables.model_fields}
        if template.variables == "HopVariables":
            return HopVariables(**common, hops=hop_lines(self.case))
        if template.variables == "RobustVariables":
            return RobustVariables(**common, glossary=glossary(question.evidence))
        if template.variables == "ContextVariables":
            shown = {i.ref for i in question.evidence}
            part = subgraph(self.case, shown)
            return ContextVariables(
                **common, when=part.when, who=part.who, what=part.what, context=part.items
            )
        return question


def glossary(evidence: tuple[EvidenceItem, ...]) -> tuple[tuple[str, str], ...]:
    """Words of the evidence that have a standard term, with that term, in alphabetical order."""
    table = synonyms()
    found = {word for item in evidence for word in words(item.text) if word in table}
    return tuple((word, table[word]) for word in sorted(found))


def schema_text(reply_type: type[Reply]) -> str:
    """The reply's JSON Schema as compact text, the same for every run."""
    return json.dumps(reply_type.model_json_schema(), sort_keys=True, separators=(",", ":"))
