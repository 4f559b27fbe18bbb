"""All facts of one video fused into one typed timeline, each event citing what it rests on.

Types are few and plain (``source:what``), so that occurrences of one type can be counted.
Facts that carry a mark of distrust enter with that mark, and mining leaves them out.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

import numpy as np

from engines.causal.observed import end_s, observed_spans
from engines.causal.series import Floats
from engines.causal.signals import (
    Interval,
    MotionSignals,
    light_steps,
    motion_bursts,
)
from engines.contracts.actions import ActionsDocument
from engines.contracts.base import Coverage
from engines.contracts.causal import Event, EventsDocument, EventSource, TimelineParams
from engines.contracts.media import SampleDocument, ShotsDocument
from engines.contracts.speech import ListenDocument, Utterance, Word
from engines.contracts.time import TimeSpan
from engines.contracts.vision import EmbedDocument, Label, TextDocument

SIGNAL_RATE_HZ = 90_000
LIGHT_ONLY_FRAMES = 4
"""A change of light is also a change of the picture; motion as short as this beside it is it."""
MIN_WORD_LETTERS = 4
NOT_EVENTS = ("speech", "silence")
"""Speech has its own events, and that nothing is heard is not something that happens."""
ONSET = "onset"
SAME_SOUND_S = 0.06
"""An onset this close to the beginning of a tone or of music is that beginning."""
COMMON_WORDS = (
    "about after again also because been before being came come could does doing done down "
    "each even every from gets give goes going good gonna have having here into just know like "
    "little look made make many more most much must need only other over really right said same "
    "some something such take than that thank thanks their them then there these they thing "
    "things think this those time very want wanted well went were what when where which while "
    "will with would yeah your"
)


def fuse(
    *,
    sample: SampleDocument,
    motion: MotionSignals | None,
    shots: ShotsDocument | None,
    embed: EmbedDocument | None,
    listen: ListenDocument | None,
    texts: TextDocument | None,
    actions: ActionsDocument | None,
    params: TimelineParams | None = None,
) -> EventsDocument:
    """Fuse what was found by eye and ear into one timeline ordered by start.

    Args:
        sample: the decode pass; says what was really seen and heard.
        motion: its ``signals`` blob; None for a file without pictures.
        shots: cuts become ``shot:cut`` (or the kind of transition).
        embed: labels become ``label:appears:<name>`` and ``label:leaves:<name>``.
        listen: utterances become ``speech:begins``, repeated words ``speech:said:<word>``,
            sounds ``sound:<class>``.
        texts: lines become ``text:appears``.
        actions: become ``action:<label>``.
        params: defaults when None.
    """
    params = params or TimelineParams()
    step = sample.sample_step_s
    end = end_s(sample, motion)
    events: list[Event] = []
    cuts: Floats = np.zeros(0)
    if shots is not None:
        cuts = np.sort(np.array([s.span.start_s for s in shots.shots[1:]], dtype=np.float64))
        events += _shot_events(shots)
    if motion is not None:
        starts = [s.span.start_s for s in shots.shots] if shots is not None else []
        events += [_in_shot(e, starts) for e in _signal_events(motion, cuts, params)]
    if embed is not None:
        events += _label_events(embed.labels, end, step, params)
    if listen is not None:
        events += _sound_events(listen.sounds)
        events += _speech_events(listen.utterances, params)
    if texts is not None:
        events += _text_events(texts, step, params)
    if actions is not None:
        events += _action_events(actions)
    events.sort(key=lambda e: (e.span.start_s, e.type, e.span.end_s, e.evidence))
    observed, whole = observed_spans(sample, motion)
    covered = sum(b - a for a, b in observed)
    missing = [
        name
        for name, part in (("labels", embed), ("sound", listen), ("texts", texts))
        if part is None
    ]
    return EventsDocument(
        coverage=Coverage(
            covered_s=covered,
            skipped_s=max(0.0, whole - covered),
            reason=f"no {', '.join(missing)} for this video" if missing else None,
        ),
        events=tuple(events),
        observed=tuple(TimeSpan.from_seconds(a, b, rate_hz=SIGNAL_RATE_HZ) for a, b in observed),
    )


def slug(text: str) -> str:
    """Lower-case letters and digits of any script joined by underscores."""
    return "_".join(re.findall(r"[^\W_]+", text.casefold()))


def _event(
    span: TimeSpan,
    kind: str,
    description: str,
    evidence: Iterable[str],
    *,
    subject: str | None = None,
    flags: tuple[str, ...] = (),
    time_error_s: float = 0.0,
) -> Event:
    source: EventSource = _source(kind)
    return Event(
        span=span,
        flags=flags,
        type=kind,
        subject=subject,
        description=description,
        source=source,
        evidence=tuple(evidence),
        time_error_s=time_error_s,
    )


def _source(kind: str) -> EventSource:
    sources: dict[str, EventSource] = {
        "shot": "shot",
        "label": "label",
        "action": "action",
        "speech": "speech",
        "sound": "sound",
        "text": "text",
        "motion": "motion",
        "light": "motion",
    }
    return sources[kind.split(":", 1)[0]]


def _at(span: TimeSpan) -> TimeSpan:
    """The instant at which a span begins."""
    return span.model_copy(update={"end_pts": span.start_pts})


def _after(span: TimeSpan) -> TimeSpan:
    """The instant at which a span ends."""
    return span.model_copy(update={"start_pts": span.end_pts})


def _shot_events(shots: ShotsDocument) -> list[Event]:
    return [
        _event(
            _at(shot.span),
            f"shot:{slug(shot.method) or 'cut'}",
            f"shot {i} begins by {shot.method}",
            [f"shot:{i}"],
            flags=shot.flags,
        )
        for i, shot in enumerate(shots.shots)
        if i > 0
    ]


def _label_events(
    labels: tuple[Label, ...], end_s: float, step_s: float, params: TimelineParams
) -> list[Event]:
    events = []
    for i, label in enumerate(labels):
        if label.score < params.min_label_score:
            continue
        name, ref = slug(label.label), [f"label:{i}"]
        common = {"subject": label.label, "flags": label.flags, "time_error_s": step_s}
        seen = f"{label.label} (p {label.score:.2f})"
        if label.span.start_s > step_s:
            events.append(
                _event(label.span, f"label:appears:{name}", f"{seen} appears", ref, **common)  # type: ignore[arg-type]
            )
        if label.span.end_s < end_s - step_s:
            events.append(
                _event(
                    _after(label.span),
                    f"label:leaves:{name}",
                    f"{seen} leaves",
                    ref,
                    **common,  # type: ignore[arg-type]
                )
            )
    return events


def _sound_events(sounds: tuple[Label, ...]) -> list[Event]:
    named = [s.span.start_s for s in sounds if slug(s.label) not in (*NOT_EVENTS, ONSET)]
    begins = np.sort(np.array(named, dtype=np.float64))

    def is_beginning(sound: Label) -> bool:
        """Whether it is the onset of a sound that has a name: one happening, one event."""
        near = np.abs(begins - sound.span.start_s).min(initial=np.inf)
        return slug(sound.label) == ONSET and bool(near <= SAME_SOUND_S)

    return [
        _event(
            sound.span,
            f"sound:{slug(sound.label) or 'onset'}",
            f"sound: {sound.label} ({sound.score:.2f})",
            [f"sound:{i}"],
            subject=sound.label,
            flags=sound.flags,
        )
        for i, sound in enumerate(sounds)
        if slug(sound.label) not in NOT_EVENTS and not is_beginning(sound)
    ]


def _speech_flags(utterance: Utterance, params: TimelineParams) -> tuple[str, ...]:
    if utterance.trust < params.min_trust and "low_trust" not in utterance.flags:
        return (*utterance.flags, "low_trust")
    return utterance.flags


def _speech_events(utterances: tuple[Utterance, ...], params: TimelineParams) -> list[Event]:
    events = []
    words: list[tuple[int, str, Word, tuple[str, ...]]] = []
    ordinal = 0
    for i, utterance in enumerate(utterances):
        flags = _speech_flags(utterance, params)
        events.append(
            _event(
                utterance.span,
                "speech:begins",
                f"said: {utterance.text.strip()}",
                [f"utterance:{i}"],
                subject=utterance.speaker,
                flags=flags,
            )
        )
        for word in utterance.words:
            words.append((ordinal, slug(word.text), word, (*flags, *word.flags)))
            ordinal += 1
    common = frozenset(COMMON_WORDS.split())
    spoken = Counter(
        name
        for _, name, _, flags in words
        if not flags and len(name) >= MIN_WORD_LETTERS and name not in common
    )
    ranked = sorted(spoken.items(), key=lambda item: (-item[1], item[0]))
    kept = {n for n, count in ranked[: params.max_said_types] if count >= params.min_said_repeats}
    events += [
        _event(
            word.span,
            f"speech:said:{name}",
            f'the word "{word.text.strip()}" is said',
            [f"word:{i}"],
            subject=name,
            flags=flags,
        )
        for i, name, word, flags in words
        if name in kept
    ]
    return events


def _text_events(texts: TextDocument, step_s: float, params: TimelineParams) -> list[Event]:
    return [
        _event(
            line.span,
            "text:appears",
            f"on screen: {line.text}",
            [f"text:{i}"],
            subject=line.text,
            flags=line.flags,
            time_error_s=step_s,
        )
        for i, line in enumerate(texts.texts)
        if line.confidence >= params.min_text_confidence and line.span.start_s > step_s
    ]


def _action_events(actions: ActionsDocument) -> list[Event]:
    """Recognised actions; strokes of limbs are too many and runs of activity too vague."""
    return [
        _event(
            action.span,
            f"action:{slug(action.label)}",
            f"{action.granularity} action: {action.label} ({action.score:.2f})",
            [f"action:{i}"],
            subject=action.person_track,
            flags=action.flags,
        )
        for i, action in enumerate(actions.actions)
        if action.granularity == "meso" and "unrecognised" not in action.flags
    ]


def _signal_events(motion: MotionSignals, cuts_s: Floats, params: TimelineParams) -> list[Event]:
    time_s = motion.time_s
    steps = light_steps(motion, cuts_s, smallest=params.light_step)
    events = _light_events(steps, time_s, params)
    lit = np.array([f for f, _ in steps], dtype=np.int64)
    for burst in motion_bursts(motion, cuts_s, prominence=params.motion_prominence):
        short = burst.end - burst.start <= LIGHT_ONLY_FRAMES
        if short and len(lit) and np.abs(lit - burst.start).min() <= LIGHT_ONLY_FRAMES:
            continue
        events += _burst_events(burst, time_s, params)
    return events


def _in_shot(event: Event, starts: list[float]) -> Event:
    """What the signals show is evidenced by the shot in which it is seen."""
    shot = bisect_right(starts, event.span.start_s + 1e-9) - 1
    return event.model_copy(update={"evidence": (f"shot:{shot}",)}) if shot >= 0 else event


def _span(time_s: Floats, start: int, end: int) -> TimeSpan:
    return TimeSpan.from_seconds(
        float(time_s[start]), float(time_s[min(end, len(time_s) - 1)]), rate_hz=SIGNAL_RATE_HZ
    )


def _burst_events(burst: Interval, time_s: Floats, params: TimelineParams) -> list[Event]:
    span = _span(time_s, burst.start, burst.end)
    text = f"something moves, {min(burst.strength, 999):.0f} deviations above its surroundings"
    found = [_event(span, "motion:burst", text, ())]
    if span.duration_s >= params.sustained_s:
        found.append(_event(_after(span), "motion:stops", "the movement stops", ()))
    return found


def _light_events(
    steps: list[tuple[int, float]], time_s: Floats, params: TimelineParams
) -> list[Event]:
    events: list[Event] = []
    skip = -1
    for n, (frame, change) in enumerate(steps):
        if n == skip:
            continue
        end = frame
        following = steps[n + 1] if n + 1 < len(steps) else None
        if following is not None and following[1] * change < 0:
            brief = time_s[following[0]] - time_s[frame] < params.sustained_s
            end = following[0] if brief else frame
            skip = n + 1 if brief else -1
        kind = "light:on" if change > 0 else "light:off"
        text = f"the picture gets {'brighter' if change > 0 else 'darker'} by {abs(change):.3f}"
        events.append(_event(_span(time_s, frame, end), kind, text, ()))
    return events
