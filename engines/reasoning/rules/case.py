"""What a rule sees: the evidence of one video with the helpers that every rule needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pydantic import Field, JsonValue

from engines.contracts.base import Contract, FactRef
from engines.contracts.causal import CausesDocument, Event, EventsDocument
from engines.contracts.reasoning import AnswerKind, Contradiction, EvidenceItem
from engines.prompts.untrusted import INSTRUCTION_LIKE, WITHHELD, instruction_like
from engines.reasoning.evidence import kind_of

MAX_QUOTE_CHARS = 120


class Claim(Contract):
    """One statement with what it rests on, before it becomes an answer."""

    answer_kind: AnswerKind
    question: str
    text: str
    cites: tuple[FactRef, ...]
    start_s: float
    end_s: float
    answer: dict[str, JsonValue] = Field(default_factory=dict)
    """Structured form; always holds ``outcome``: ``answered``, ``nothing_found`` (looked, and
    there is none) or ``not_enough_evidence`` (could not answer; ``reason`` has the number)."""


@dataclass(frozen=True)
class Case:
    """The evidence of one video and what the causal stage made of it."""

    evidence: tuple[EvidenceItem, ...]
    events: EventsDocument
    causes: CausesDocument
    contradictions: tuple[Contradiction, ...] = ()
    consistency_checks: int = 0
    """Pairs of facts that the ledger compared."""

    @cached_property
    def start_s(self) -> float:
        """Where the evidence begins on the asset clock; 0 when there is none."""
        return min((i.start_s for i in self.evidence), default=0.0)

    @cached_property
    def end_s(self) -> float:
        """Where the evidence ends on the asset clock."""
        return max((i.end_s for i in self.evidence), default=0.0)

    @cached_property
    def by_ref(self) -> dict[str, EvidenceItem]:
        """Items by their ref."""
        return {i.ref: i for i in self.evidence}

    def of(self, kind: str) -> tuple[EvidenceItem, ...]:
        """Items of one kind, in time order."""
        return self._by_kind.get(kind, ())

    @cached_property
    def _by_kind(self) -> dict[str, tuple[EvidenceItem, ...]]:
        groups: dict[str, list[EvidenceItem]] = {}
        for item in self.evidence:
            groups.setdefault(kind_of(item.ref), []).append(item)
        return {k: tuple(v) for k, v in groups.items()}

    @cached_property
    def events_of_type(self) -> dict[str, tuple[tuple[float, FactRef], ...]]:
        """(start in seconds, ref) of the events of each type, in time order."""
        groups: dict[str, list[tuple[float, FactRef]]] = {}
        for n, event in enumerate(self.events.events):
            groups.setdefault(event.type, []).append((event.span.start_s, f"event:{n}"))
        return {t: tuple(sorted(found)) for t, found in groups.items()}

    def citable(self, refs: Iterable[str | None]) -> tuple[str, ...]:
        """Those of ``refs`` that are in the evidence, each once, in the order given."""
        return tuple(dict.fromkeys(r for r in refs if r is not None and r in self.by_ref))

    def event(self, ref: str) -> Event:
        """The event behind ``event:n``."""
        return self.events.events[int(ref.split(":")[1])]

    def describe(self, ref: str) -> str:
        """A few words for an event: its description, quoted where the words are not ours."""
        item = self.by_ref.get(ref)
        return quote(item) if item is not None else readable(self.event(ref).type)

    def claim(
        self,
        kind: AnswerKind,
        question: str,
        text: str,
        cites: Iterable[str | None],
        answer: dict[str, JsonValue],
        spanned: Iterable[str | None] = (),
        background: Iterable[str | None] = (),
    ) -> Claim:
        """A claim with the span of what it cites, or of the video where it cites nothing.

        Args:
            kind: of the question.
            question: in words.
            text: the claim in words.
            cites: what it rests on; what is not in the evidence is left out.
            answer: the structured form.
            spanned: those of the cites that say when it holds; all of them if empty. An edge
                between types spans every occurrence, its claim only the one that is told.
            background: cited after the others, without a say in the span.
        """
        cites = tuple(cites)
        refs = self.citable((*cites, *background))
        cited = [self.by_ref[r] for r in self.citable(spanned) or self.citable(cites)]
        return Claim(
            answer_kind=kind,
            question=question,
            text=text,
            cites=refs,
            start_s=min((i.start_s for i in cited), default=self.start_s),
            end_s=max((i.end_s for i in cited), default=self.end_s),
            answer=answer,
        )


def quote(item: EvidenceItem, max_chars: int = MAX_QUOTE_CHARS) -> str:
    """The item's words for a claim: quoted if untrusted, withheld if they try to give orders."""
    if INSTRUCTION_LIKE in item.flags:
        return WITHHELD
    text = item.text
    if len(text) > max_chars:
        text = text[:max_chars].rsplit(" ", 1)[0] + "…"
    return f'"{text}"' if item.untrusted else text


def harmless(text: str) -> str:
    """Our own sentence, withheld if a name in it tries to give orders."""
    return WITHHELD if instruction_like(text) else text


def readable(event_type: str) -> str:
    """``sound onset`` for ``sound:onset``."""
    return event_type.replace(":", " ").replace("_", " ").strip()


def sentence(text: str) -> str:
    """First letter upper case, one full stop at the end."""
    text = text.strip()
    closed = text if text.endswith((".", "!", "?", '."', '!"', '?"')) else f"{text}."
    return closed[:1].upper() + closed[1:]
