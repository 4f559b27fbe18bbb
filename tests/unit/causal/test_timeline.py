"""The fused timeline: types, order, evidence, marks of distrust, what was observed."""

import numpy as np
import pytest

from engines.causal.miner import mine
from engines.causal.signals import MotionSignals, light_steps, motion_bursts
from engines.causal.timeline import fuse
from engines.contracts.base import Coverage
from engines.contracts.causal import MinerParams, TimelineParams
from engines.contracts.media import (
    AudioStream,
    MediaInfo,
    Problem,
    SampleDocument,
    Shot,
    ShotsDocument,
)
from engines.contracts.speech import ListenDocument, Utterance, Word
from engines.contracts.time import TimeSpan
from engines.contracts.vision import Box, EmbedDocument, Label, TextDocument, TextLine

COVERED = Coverage(covered_s=60, skipped_s=0)
FPS = 25
NAMES = ("luma", "residual")


def sample(length_s: float = 60.0, **changes) -> SampleDocument:
    values = {
        "coverage": COVERED,
        "media": MediaInfo(
            kind="video",
            container="mp4",
            declared_duration_s=length_s,
            duration_s=length_s,
            start_s=0.0,
        ),
        "video": None,
        "audio": None,
        "samples": (),
        "sample_step_s": 0.5,
        "signal_names": NAMES,
        "verdict": "complete",
    }
    return SampleDocument(**{**values, **changes})


def signals(length_s: float = 60.0, lit=(), moving=(), cuts=()) -> MotionSignals:
    n = int(length_s * FPS)
    rng = np.random.default_rng(0)
    time = np.arange(n) / FPS
    luma = 0.3 + 0.0005 * rng.normal(size=n)
    motion = 0.001 + 0.0002 * np.abs(rng.normal(size=n))
    for start, end in lit:
        luma[(time >= start) & (time < end)] += 0.05
        motion[int(start * FPS)] += 0.01
        motion[min(n - 1, int(end * FPS))] += 0.01
    for start, end in moving:
        motion[(time >= start) & (time < end)] += 0.02
    for cut in cuts:
        luma[time >= cut] += 0.1 * rng.choice([-1, 1])
        motion[int(cut * FPS)] += 0.2
    values = np.column_stack([luma, motion]).astype(np.float32)
    return MotionSignals(values, np.arange(n + 1, dtype=np.int64), NAMES, 1 / FPS)


def label(start: float, end: float, name: str, vocabulary: str = "imagenet-1k", **more) -> Label:
    return Label(
        span=TimeSpan.from_seconds(start, end),
        label=name,
        score=more.pop("score", 0.9),
        vocabulary=vocabulary,
        model="m",
        **more,
    )


def speech(*spoken, **more) -> ListenDocument:
    utterances = tuple(
        Utterance(
            span=TimeSpan.from_seconds(t, t + 1),
            text=text,
            language="en",
            confidence=0.9,
            trust=trust,
            no_speech_probability=0.0,
            words=tuple(
                Word(
                    span=TimeSpan.from_seconds(t + i * 0.2, t + i * 0.2 + 0.1),
                    text=w,
                    confidence=1.0,
                )
                for i, w in enumerate(text.split())
            ),
            flags=flags,
        )
        for t, text, trust, flags in spoken
    )
    return ListenDocument(
        coverage=COVERED, utterances=utterances, model="m", **{"sounds": (), **more}
    )


def fused(**parts):
    values = dict.fromkeys(("motion", "shots", "embed", "listen", "texts", "actions"))
    return fuse(sample=parts.pop("sample", sample()), **{**values, **parts})


def test_everything_stands_in_order_with_its_evidence():
    shots = ShotsDocument(
        coverage=COVERED,
        keyframes=(),
        shots=tuple(
            Shot(
                span=TimeSpan.from_seconds(a, b),
                start_frame=int(a * FPS),
                end_frame=int(b * FPS),
                method=method,
                score=1.0,
            )
            for a, b, method in ((0, 30, "start"), (30, 60, "cut"))
        ),
    )
    line = TextLine(
        span=TimeSpan.from_seconds(14, 20),
        text="EXIT",
        confidence=0.9,
        box=Box(x=0, y=0, w=0.1, h=0.1),
    )
    timeline = fused(
        motion=signals(lit=[(5, 5.4)], moving=[(10, 12)], cuts=[30]),
        shots=shots,
        embed=EmbedDocument(
            coverage=COVERED,
            labels=(label(0, 60, "desk"), label(8, 25, "Traffic light"), label(40, 60, "cat")),
            embedded=(),
            dimension=0,
            model="m",
        ),
        listen=speech((3, "hello there", 0.9, ()), sounds=(label(6, 7, "music", "sound"),)),
        texts=TextDocument(coverage=COVERED, texts=(line,), model="m"),
    )
    found = [(e.type, e.evidence) for e in timeline.events]
    assert found == [
        ("speech:begins", ("utterance:0",)),
        ("light:on", ("shot:0",)),
        ("sound:music", ("sound:0",)),
        ("label:appears:traffic_light", ("label:1",)),
        ("motion:burst", ("shot:0",)),
        ("motion:stops", ("shot:0",)),
        ("text:appears", ("text:0",)),
        ("label:leaves:traffic_light", ("label:1",)),
        ("shot:cut", ("shot:1",)),
        ("label:appears:cat", ("label:2",)),
    ]
    starts = [e.span.start_s for e in timeline.events]
    assert starts == sorted(starts)
    assert next(e for e in timeline.events if e.type == "text:appears").time_error_s == 0.5


@pytest.mark.parametrize(("trust", "flags"), [(0.2, ()), (0.9, ("hallucination",))])
def test_distrusted_speech_never_enters_unmarked(trust, flags):
    timeline = fused(listen=speech(*((t, "danger danger", trust, flags) for t in range(5, 45, 8))))
    assert timeline.events
    assert all(e.flags for e in timeline.events)
    assert mine(timeline.events, timeline.observed).num_events == 0


def test_only_repeated_content_words_become_types():
    timeline = fused(listen=speech(*((t, "press the button now", 0.9, ()) for t in (5, 15, 25))))
    said = {e.type for e in timeline.events if e.type.startswith("speech:said")}
    assert said == {"speech:said:press", "speech:said:button"}


def test_lasting_light_has_an_end_and_a_flash_has_none():
    timeline = fused(motion=signals(lit=[(5, 5.3), (20, 24)]))
    assert [(e.type, round(e.span.start_s, 2)) for e in timeline.events] == [
        ("light:on", 5.0),
        ("light:on", 20.0),
        ("light:off", 24.0),
    ]


def test_bursts_begin_where_the_movement_begins():
    found = motion_bursts(signals(moving=[(10, 10.4), (30, 31)]), np.zeros(0), prominence=6.0)
    assert [b.start / FPS for b in found] == pytest.approx([10, 30], abs=0.081)


def test_a_still_picture_has_no_events():
    still = signals()
    assert motion_bursts(still, np.zeros(0), prominence=6.0) == []
    assert light_steps(still, np.zeros(0), smallest=0.008) == []
    empty = MotionSignals(np.zeros((0, 2), np.float32), np.zeros(1, np.int64), NAMES, 0.04)
    assert fused(motion=empty).events == ()


def test_broken_numbers_do_not_break_the_timeline():
    made = signals(lit=[(5, 5.4)])
    made.values[700:710] = np.nan
    assert "light:on" in {e.type for e in fused(motion=made).events}


def test_what_was_not_decoded_is_left_out_of_the_observed_spans():
    audio = AudioStream(
        stream_index=1, codec="aac", sample_rate_hz=16_000, channels=1, start_s=2, duration_s=50
    )
    problem = Problem(code="damaged", message="", start_s=20, end_s=25)
    timeline = fused(sample=sample(audio=audio, audio_gaps=((30, 31),), problems=(problem,)))
    spans = [(s.start_s, s.end_s) for s in timeline.observed]
    assert spans == [(2, 20), (25, 30), (31, 52)]
    assert timeline.coverage.skipped_s == pytest.approx(60 - 44)


def test_the_demo_from_signals_to_the_edge():
    """A flash, and half a second later a sound, twelve times among other things."""
    rng = np.random.default_rng(4)
    lit = 3 + np.cumsum(rng.uniform(3, 6, 12)) - 3
    moving = [(t, t + 0.6) for t in np.sort(rng.uniform(2, 58, 7))]
    clicks = [label(t + 0.5 + rng.normal() * 0.02, t + 0.7, "onset", "sound") for t in lit]
    other = [label(t, t + 0.2, "tone", "sound") for t in rng.uniform(0, 58, 6)]
    timeline = fused(
        motion=signals(lit=[(t, t + 0.3) for t in lit], moving=moving),
        listen=speech(sounds=(*clicks, *other)),
    )
    document = mine(
        timeline.events, timeline.observed, MinerParams(permutations=200, placebo_runs=0)
    )
    edges = {(e.cause_type, e.effect_type) for e in document.edges if e.verdict == "causal"}
    assert edges == {("light:on", "sound:onset")}


def test_the_onset_of_a_named_sound_is_that_sound():
    """One happening, one event; an onset by itself, or in a silence or speech, stays."""
    sounds = (
        label(5, 5.1, "onset", "sound"),
        label(10, 10.1, "onset", "sound"),
        label(10.03, 10.4, "tone", "sound"),
        label(20, 20.1, "onset", "sound"),
        label(20, 25, "silence", "sound"),
        label(10.2, 10.3, "onset", "sound"),
    )
    events = fused(listen=speech(sounds=sounds)).events
    assert [(e.type, e.span.start_s) for e in events] == [
        ("sound:onset", 5.0),
        ("sound:tone", pytest.approx(10.03, abs=1e-4)),
        ("sound:onset", pytest.approx(10.2, abs=1e-4)),
        ("sound:onset", 20.0),
    ]


def test_parameters_bound_what_enters():
    weak = EmbedDocument(
        coverage=COVERED,
        labels=(label(10, 20, "cat", score=0.3),),
        embedded=(),
        dimension=0,
        model="m",
    )
    assert fused(embed=weak).events
    strict = TimelineParams(min_label_score=0.5)
    assert fused(embed=weak, params=strict).events == ()
