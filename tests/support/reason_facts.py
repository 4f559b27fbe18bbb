"""Stage documents of a small made video: a lamp that a button lights, with talk about it."""

from collections.abc import Callable
from itertools import pairwise

from engines.contracts.base import Coverage
from engines.contracts.causal import CausalEdge, CausesDocument, Event, EventsDocument
from engines.contracts.media import Keyframe, Shot, ShotsDocument
from engines.contracts.reasoning import EvidenceItem
from engines.contracts.speech import ListenDocument, Utterance
from engines.contracts.time import TimeSpan
from engines.contracts.vision import Box, EmbedDocument, Label, TextDocument, TextLine
from engines.reasoning import evidence

COVERAGE = Coverage(covered_s=20, skipped_s=0)


def span(start_s: float, end_s: float) -> TimeSpan:
    return TimeSpan.from_seconds(start_s, end_s)


class Made:
    """Builds documents; every method takes what a test wants to be different."""

    coverage = COVERAGE

    def shots(self, *ends_s: float) -> ShotsDocument:
        bounds = (0.0, *(ends_s or (8.0, 20.0)))
        shots = tuple(
            Shot(
                span=span(a, b),
                start_frame=round(25 * a),
                end_frame=round(25 * b),
                method="cut" if a else "start",
                score=1.0,
            )
            for a, b in pairwise(bounds)
        )
        keyframes = tuple(
            Keyframe(
                span=span(s.span.start_s + 1, s.span.start_s + 1.04),
                shot_ordinal=n,
                frame=s.start_frame + 25,
                sample_name=f"{n}.jpg",
                reason="sharpest",
                energy=0.0,
            )
            for n, s in enumerate(shots)
        )
        return ShotsDocument(coverage=COVERAGE, shots=shots, keyframes=keyframes)

    def spoken(
        self,
        *lines: tuple[float, float, str],
        trust: float = 0.9,
        sounds: tuple[Label, ...] = (),
        speakers: tuple[str | None, ...] = (),
        flags: tuple[str, ...] = (),
    ) -> ListenDocument:
        return ListenDocument(
            coverage=COVERAGE,
            utterances=tuple(
                Utterance(
                    span=span(a, b),
                    text=text,
                    language="en",
                    speaker=speakers[n] if n < len(speakers) else None,
                    confidence=0.9,
                    trust=trust,
                    no_speech_probability=0.0,
                    words=(),
                    flags=flags,
                )
                for n, (a, b, text) in enumerate(lines)
            ),
            sounds=sounds,
            model="made",
        )

    def shown(self, *lines: tuple[float, float, str], confidence: float = 0.9) -> TextDocument:
        return TextDocument(
            coverage=COVERAGE,
            texts=tuple(
                TextLine(
                    span=span(a, b), text=text, confidence=confidence, box=Box(x=0, y=0, w=1, h=0.1)
                )
                for a, b, text in lines
            ),
            model="made",
        )

    def label(self, a: float, b: float, name: str, score: float = 0.9, **more: str) -> Label:
        vocabulary = more.get("vocabulary", "imagenet-1k")
        return Label(span=span(a, b), label=name, score=score, vocabulary=vocabulary, model="made")

    def embed(self, *labels: Label) -> EmbedDocument:
        return EmbedDocument(
            coverage=COVERAGE, labels=labels, embedded=(), dimension=0, model="made"
        )

    def timeline(self, *times: tuple[float, str]) -> EventsDocument:
        given = times or tuple(
            (t + shift, name)
            for t in (2.0, 5.0, 9.0, 12.0, 15.0)
            for shift, name in ((0.0, "motion:button"), (0.5, "motion:lamp"))
        )
        return EventsDocument(
            coverage=COVERAGE,
            events=tuple(
                Event(
                    span=span(t, t + 0.1),
                    type=name,
                    subject=None,
                    description=f"the {name.split(':')[1]} changes",
                    source="motion",
                    evidence=("shot:0",),
                )
                for t, name in given
            ),
        )

    def edge(self, **changes: object) -> CausalEdge:
        values: dict[str, object] = {
            "span": span(2.0, 2.5),
            "cause_type": "motion:button",
            "effect_type": "motion:lamp",
            "lag_s": 0.5,
            "cooccurrences": 5,
            "strength": 0.6,
            "p_value": 0.001,
            "q_value": 0.004,
            "test": "kci",
            "effective_n": 20.0,
            "counterfactual_delta": 0.6,
            "delta_low": 0.4,
            "delta_high": 0.8,
            "confidence": 0.9,
            "placebo_rate": 0.02,
            "verdict": "causal",
            "reason": "q = 0.004",
        }
        return CausalEdge.model_validate({**values, **changes})

    def causes(
        self, *edges: CausalEdge, verdict: str = "edges", reason: str = "1 edge"
    ) -> CausesDocument:
        return CausesDocument.model_validate(
            {
                "coverage": COVERAGE,
                "edges": edges,
                "verdict": verdict,
                "reason": reason,
                "num_events": 10,
                "effective_n": 20.0,
                "placebo_rate": 0.02,
            }
        )

    def no_causes(self) -> CausesDocument:
        return self.causes(
            verdict="insufficient_evidence", reason="3 co-occurrences, at least 5 needed"
        )

    def evidence(self, **documents: object) -> tuple[EvidenceItem, ...]:
        given = {
            "shots": self.shots(),
            "listen": None,
            "texts": None,
            "embed": None,
            "actions": None,
            "events": None,
            "causes": None,
        }
        return evidence.build(**{**given, **documents})  # type: ignore[arg-type]


def with_changes(
    lines: tuple[tuple[float, float, str], ...], change: Callable[[str], str]
) -> tuple[tuple[float, float, str], ...]:
    """The same lines at the same times, each text changed."""
    return tuple((a, b, change(text)) for a, b, text in lines)
