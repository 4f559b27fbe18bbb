"""The time-aligned evidence: every stage's facts as one sequence, cut to a budget by saliency.

    items = build(shots=..., listen=..., texts=..., embed=..., actions=..., events=..., causes=...)
    shown = fit(items, max_tokens=3000)

Facts that are not to be trusted do not enter: what the recogniser itself doubts would come back
as a cited claim. Words spoken or shown are marked untrusted, and those that read like orders to a
model carry a flag.
"""

from collections.abc import Iterable

from engines.contracts.actions import ActionsDocument
from engines.contracts.base import Fact
from engines.contracts.causal import CausalEdge, CausesDocument, EventsDocument
from engines.contracts.media import ShotsDocument
from engines.contracts.reasoning import EvidenceItem
from engines.contracts.speech import ListenDocument
from engines.contracts.vision import EmbedDocument, Label, TextDocument
from engines.prompts.normalise import normalise
from engines.prompts.render import evidence_line
from engines.prompts.untrusted import INSTRUCTION_LIKE, instruction_like_refs
from engines.reasoning.tokens import estimate

MIN_TRUST = 0.5
"""Utterances below it are left out; the listen stage flags them for the same reason."""
MIN_TEXT_CONFIDENCE = 0.6
MIN_LABEL_SCORE = 0.2
DISTRUST_FLAGS = frozenset({"hallucination", "loop", "low_trust", "no_speech"})
UNUSED_ACTION_FLAGS = DISTRUST_FLAGS | {"unrecognised"}
REDEEMED = "subtitle_agrees"
"""A second witness: what was only suspected is kept."""
COUNTER = "counter"
"""A running number on the screen: true, but it says little."""

KIND_ORDER = (
    "shot",
    "keyframe",
    "action",
    "label",
    "sound",
    "utterance",
    "text",
    "event",
    "edge",
)
_UNTRUSTED_EVENT_SOURCES = frozenset({"speech", "text"})


def kind_of(ref: str) -> str:
    """``utterance`` for ``utterance:3``."""
    return ref.split(":", 1)[0]


def ordinal_of(ref: str) -> int:
    """3 for ``utterance:3``."""
    return int(ref.split(":", 1)[1])


def build(
    *,
    shots: ShotsDocument | None,
    listen: ListenDocument | None,
    texts: TextDocument | None,
    embed: EmbedDocument | None,
    actions: ActionsDocument | None,
    events: EventsDocument | None,
    causes: CausesDocument | None,
) -> tuple[EvidenceItem, ...]:
    """One item for each fact that may be cited, ordered by start, then kind, then ordinal.

    Args:
        shots: shots and keyframes; None where there is no picture.
        listen: utterances and sounds.
        texts: on-screen text.
        embed: labels.
        actions: what people do.
        events: the typed timeline.
        causes: tested edges, whatever their verdict.

    Returns:
        Items with refs into those documents; empty when there is nothing to cite.
    """
    items: list[EvidenceItem] = []
    if shots is not None:
        items += _shots(shots)
    if embed is not None:
        items += _labels(embed.labels, "label", "seen")
    if listen is not None:
        items += _labels(listen.sounds, "sound", "heard")
        items += _utterances(listen)
    if texts is not None:
        items += _texts(texts)
    if actions is not None:
        items += _actions(actions)
    if events is not None:
        items += _events(events)
    if causes is not None:
        items += _edges(causes)
    items.sort(key=lambda i: (i.start_s, KIND_ORDER.index(kind_of(i.ref)), ordinal_of(i.ref)))
    suspects = instruction_like_refs(items)
    return tuple(
        i.model_copy(update={"flags": (*i.flags, INSTRUCTION_LIKE)}) if i.ref in suspects else i
        for i in items
    )


def fit(items: Iterable[EvidenceItem], max_tokens: int) -> tuple[EvidenceItem, ...]:
    """The most salient items whose prompt lines fit a budget, in their order.

    Keyframes are always kept, even where they alone are more than the budget; ``scenes`` in
    engines.reasoning.anchors cuts a long video so that this does not happen.

    Args:
        items: in time order.
        max_tokens: budget for the rendered lines, by the estimate of engines.reasoning.tokens.

    Returns:
        A subsequence of ``items``.
    """
    given = tuple(items)
    costs = {i.ref: line_tokens(i) for i in given}
    kept = {i.ref for i in given if kind_of(i.ref) == "keyframe"}
    left = max_tokens - sum(costs[ref] for ref in kept)
    for item in sorted(given, key=lambda i: (-i.saliency, i.start_s, i.ref)):
        if item.ref not in kept and costs[item.ref] <= left:
            kept.add(item.ref)
            left -= costs[item.ref]
    return tuple(i for i in given if i.ref in kept)


def line_tokens(item: EvidenceItem) -> int:
    """Estimated tokens of the item's line in a prompt, its line end included."""
    return estimate(evidence_line(item)) + 1


def _item(
    ref: str,
    fact: Fact,
    text: str,
    *,
    saliency: float,
    untrusted: bool = False,
    note: str = "",
) -> EvidenceItem:
    return EvidenceItem(
        ref=ref,
        start_s=fact.span.start_s,
        end_s=fact.span.end_s,
        text=text,
        saliency=max(0.0, saliency),
        untrusted=untrusted,
        note=note,
        flags=fact.flags,
    )


def _note(note: str, flags: tuple[str, ...]) -> str:
    """Our note with the marks of the fact, in words."""
    marks = [f"marked {flag.replace('_', ' ')}" for flag in flags]
    return ", ".join(part for part in (note, *marks) if part)


def _shots(document: ShotsDocument) -> list[EvidenceItem]:
    items = [
        _item(f"shot:{n}", shot, f"shot {n + 1}", saliency=0.5, note=f"begins by {shot.method}")
        for n, shot in enumerate(document.shots)
    ]
    items += [
        _item(
            f"keyframe:{n}",
            frame,
            f"keyframe of shot {frame.shot_ordinal + 1}",
            saliency=1.0,
            note=frame.reason.replace("_", " "),
        )
        for n, frame in enumerate(document.keyframes)
    ]
    return items


def _labels(labels: tuple[Label, ...], kind: str, verb: str) -> list[EvidenceItem]:
    return [
        _item(
            f"{kind}:{n}",
            label,
            normalise(label.label),
            saliency=0.5 * label.score,
            note=f"{verb}, score {label.score:.2f}",
        )
        for n, label in enumerate(labels)
        if label.score >= MIN_LABEL_SCORE and not DISTRUST_FLAGS & set(label.flags)
    ]


def _utterances(document: ListenDocument) -> list[EvidenceItem]:
    return [
        _item(
            f"utterance:{n}",
            spoken,
            normalise(spoken.text),
            saliency=0.9 * spoken.trust,
            untrusted=True,
            note=_note(f"speaker {spoken.speaker}" if spoken.speaker else "", spoken.flags),
        )
        for n, spoken in enumerate(document.utterances)
        if spoken.trust >= MIN_TRUST
        and (REDEEMED in spoken.flags or not DISTRUST_FLAGS & set(spoken.flags))
        and normalise(spoken.text)
    ]


def _texts(document: TextDocument) -> list[EvidenceItem]:
    return [
        _item(
            f"text:{n}",
            line,
            normalise(line.text),
            saliency=(0.1 if COUNTER in line.flags else 0.7) * line.confidence,
            untrusted=True,
            note=_note("", line.flags),
        )
        for n, line in enumerate(document.texts)
        if line.confidence >= MIN_TEXT_CONFIDENCE
        and not DISTRUST_FLAGS & set(line.flags)
        and normalise(line.text)
    ]


def _actions(document: ActionsDocument) -> list[EvidenceItem]:
    """Recognised actions; strokes of limbs are too many and runs of activity too vague."""
    return [
        _item(
            f"action:{n}",
            action,
            normalise(action.label),
            saliency=0.9 * min(1.0, max(0.0, action.score)),
            note=", ".join(
                part
                for part in (action.granularity, action.person_track, f"score {action.score:.2f}")
                if part
            ),
        )
        for n, action in enumerate(document.actions)
        if action.granularity == "meso" and not UNUSED_ACTION_FLAGS & set(action.flags)
    ]


def _events(document: EventsDocument) -> list[EvidenceItem]:
    return [
        _item(
            f"event:{n}",
            event,
            normalise(event.description) or event.type,
            saliency=0.45,
            untrusted=event.source in _UNTRUSTED_EVENT_SOURCES,
            note=event.type if is_plain_type(event.type) else "",
        )
        for n, event in enumerate(document.events)
        if not DISTRUST_FLAGS & set(event.flags)
    ]


def is_plain_type(event_type: str) -> bool:
    """Whether an event's type is a name of ours, and not words taken from the video."""
    return event_type.split(":", 1)[0] not in _UNTRUSTED_EVENT_SOURCES or (
        event_type.count(":") <= 1 and event_type.replace(":", "").replace("_", "").isalpha()
    )


def _edges(document: CausesDocument) -> list[EvidenceItem]:
    return [
        _item(
            f"edge:{n}",
            edge,
            f"{edge.cause_type} before {edge.effect_type}",
            saliency=1.0 if edge.verdict == "causal" else 0.3,
            untrusted=not (is_plain_type(edge.cause_type) and is_plain_type(edge.effect_type)),
            note=_edge_note(edge),
        )
        for n, edge in enumerate(document.edges)
    ]


def _edge_note(edge: CausalEdge) -> str:
    parts = [edge.verdict.replace("_", " "), f"{edge.cooccurrences} co-occurrences"]
    if edge.lag_s is not None:
        parts.append(f"lag {edge.lag_s:.2f} s")
    if edge.q_value is not None:
        parts.append(f"q {edge.q_value:.3g}")
    if edge.confidence is not None:
        parts.append(f"confidence {edge.confidence:.2f}")
    return ", ".join(parts)
