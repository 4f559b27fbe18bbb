"""Worlds rendered to real video and read back by the pipeline's own engines.

A ball jumps aside, a lamp flashes, a shade dims the picture, a bell clicks, a horn sounds. They
are wired as pairs, chains and forks of five levels, with any of them in any role and the rest as
distractors. What the decoder, the shot detector, the sound labels and the timeline make of the
file is mined; the truth is that of re-simulation.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from numpy.typing import NDArray

from engines.causal.miner import mine
from engines.causal.signals import MotionSignals
from engines.causal.timeline import fuse
from engines.contracts.base import Coverage
from engines.contracts.causal import EventsDocument
from engines.contracts.media import SampleParams, ShotParams
from engines.contracts.speech import ListenDocument
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.shots import detect
from engines.speech.sounds import HeardSpeech, label_sounds
from flows.bench.causal_baselines import Pairs, lagged_correlation, position_prior, var_test
from flows.bench.causal_world_outcome import PARAMS, Outcome, confidences, type_edges
from flows.bench.causal_world_simulation import (
    LEVELS,
    Mechanism,
    Occurrences,
    Source,
    World,
    simulate,
    true_edges,
)

WIDTH, HEIGHT, FPS, RATE_HZ = 160, 96, 25, 16_000
SEEN_AS = {
    "motion:burst": "ball",
    "light:on": "lamp",
    "light:off": "shade",
    "sound:onset": "bell",
    "sound:tone": "horn",
}
THINGS = tuple(SEEN_AS.values())
DURATION_S = 110.0
ROLL_S, FLASH_S, CLICK_S, HORN_S, HORN_HZ, FADE_S = 0.36, 0.28, 0.08, 0.3, 660.0, 0.02
UNRELIABLE, JITTER_S = 0.85, (0.03, 0.07)

Picture = NDArray[np.uint8]
Sound = NDArray[np.float32]


def pixel_world(index: int) -> World:
    """World number ``index``: levels in turn; roles, rhythms, lags and times by chance."""
    level, number = index % len(LEVELS), index // len(LEVELS)
    rng = np.random.default_rng([number, level, 77])
    a, b, c, d, e = (THINGS[i] for i in rng.permutation(len(THINGS)))
    sure = 1.0 if level < 3 else UNRELIABLE
    jitter = JITTER_S[0] if level < 3 else JITTER_S[1]

    def rule(cause: str, effect: str) -> Mechanism:
        return Mechanism(cause, effect, float(rng.uniform(0.5, 1.4)), jitter, sure)

    def alone(kind: str, rhythm: str = "random") -> Source:
        period = float(rng.uniform(4.5, 7.0))
        return Source(kind, "periodic" if rhythm == "periodic" else "random", period)

    wiring: dict[int, tuple[list[Mechanism], list[Source]]] = {
        0: ([rule(a, b)], [alone(c), alone(d, "periodic")]),
        1: ([rule(a, b), rule(b, c)], [alone(d)]),
        2: ([rule(a, b), rule(a, c)], [alone(d, "periodic")]),
        3: ([rule(a, b), rule(b, c)], [Source(c, "random", 25.0), alone(d)]),
        4: ([rule(a, b), rule(a, c), rule(d, e)], [alone(d)]),
    }
    rules, others = wiring[level]
    sources = [Source(a, "random", float(rng.uniform(5.0, 6.0))), *others]
    return World(LEVELS[level], level, index, tuple(sources), tuple(rules), DURATION_S)


def _active(times: tuple[float, ...], length_s: float) -> NDArray[np.bool_]:
    """Whether each frame lies within ``length_s`` after one of the times."""
    shown = np.zeros(int(DURATION_S * FPS), dtype=np.bool_)
    for time in times:
        first = int(np.ceil(time * FPS))
        shown[first : int(np.ceil((time + length_s) * FPS))] = True
    return shown


def _pictures(world: World, happened: Occurrences) -> Iterator[Picture]:
    rng = np.random.default_rng(world.seed)
    noise = rng.integers(-12, 12, size=(HEIGHT // 8, WIDTH // 8, 1)).repeat(8, 0).repeat(8, 1)
    ground = np.clip(70 + noise + np.zeros((1, 1, 3), dtype=np.int64), 0, 255).astype(np.uint8)
    rolls = np.array(happened.of("ball"))
    lit, dim = _active(happened.of("lamp"), FLASH_S), _active(happened.of("shade"), FLASH_S)
    for n in range(int(world.duration_s * FPS)):
        picture = ground.copy()
        before = rolls[rolls <= n / FPS]
        place = float(np.clip((n / FPS - before) / ROLL_S, 0.0, 1.0).sum())
        phase = place % 2.0
        at = 20 + int(80 * (phase if phase <= 1.0 else 2.0 - phase))
        picture[60:80, at : at + 20] = (200, 190, 60)
        if lit[n]:
            picture[8:32, 110:146] = (250, 250, 235)
        if dim[n]:
            picture[8:40, 4:60] = 10
        yield picture


def _sound(world: World, happened: Occurrences) -> Sound:
    rng = np.random.default_rng(world.seed)
    out = rng.normal(0.0, 0.0008, int(world.duration_s * RATE_HZ))
    length = int(CLICK_S * RATE_HZ)
    decay = np.exp(-np.arange(length) / (0.02 * RATE_HZ))
    for time in happened.of("bell"):
        part = out[int(time * RATE_HZ) :][:length]
        part += 0.5 * (rng.normal(size=length) * decay)[: len(part)]
    blown = np.arange(int(HORN_S * RATE_HZ))
    fade = np.minimum(1.0, np.minimum(blown, blown[::-1]) / (FADE_S * RATE_HZ))
    tone = 0.3 * np.sin(2 * np.pi * HORN_HZ * blown / RATE_HZ) * fade
    for time in happened.of("horn"):
        part = out[int(time * RATE_HZ) :][: len(tone)]
        part += tone[: len(part)]
    return np.clip(out, -1, 1).astype(np.float32)


def render(world: World, path: Path) -> None:
    """Write the world as an MP4 with H.264 and AAC."""
    happened = simulate(world)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        audio = container.add_stream("aac", rate=RATE_HZ, layout="mono")
        for picture in _pictures(world, happened):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
        sound = _sound(world, happened)
        for begin in range(0, len(sound), 1024):
            block = av.AudioFrame.from_ndarray(
                sound[None, begin : begin + 1024], format="fltp", layout="mono"
            )
            block.sample_rate, block.pts = RATE_HZ, begin
            container.mux(audio.encode(block))
        container.mux(audio.encode(None))


def read_back(path: Path, folder: Path) -> EventsDocument:
    """The timeline that the engines make of a file; recognition of speech is left out."""
    probed = probe(path)
    sample = decode(path, probed, SampleParams(), folder)
    shots = detect(sample, folder, ShotParams(second_look=False))
    pcm = np.load(folder / "audio.npy")[0]
    silent = HeardSpeech([], np.zeros(len(pcm) // 512 + 1, dtype=np.float32), "none")
    sounds = label_sounds(pcm, sample.audio_start_pts, [], silent, None)
    listen = ListenDocument(
        coverage=Coverage(covered_s=len(pcm) / RATE_HZ, skipped_s=0.0),
        utterances=(),
        sounds=sounds,
        model="signal",
    )
    motion = MotionSignals(
        values=np.load(folder / "signals.npy"),
        pts=np.load(folder / "pts.npy"),
        names=sample.signal_names,
        time_base_s=sample.time_base_num / sample.time_base_den,
    )
    return fuse(
        sample=sample,
        motion=motion,
        shots=shots,
        embed=None,
        listen=listen,
        texts=None,
        actions=None,
    )


def things_of(edges: Pairs) -> Pairs:
    """Edges between the things behind the event types; other types keep their name."""
    named = {(SEEN_AS.get(a, a), SEEN_AS.get(b, b)) for a, b in edges}
    return frozenset((a, b) for a, b in named if a != b)


def judge_pixels(index: int) -> Outcome:
    """Render, read back and mine one world, and hold every method against re-simulation."""
    world = pixel_world(index)
    truth, total = true_edges(world)
    with TemporaryDirectory() as name:
        folder = Path(name)
        render(world, folder / "world.mp4")
        timeline = read_back(folder / "world.mp4", folder)
    document = mine(timeline.events, timeline.observed, PARAMS)
    limits = {"max_lag_s": PARAMS.max_lag_s, "alpha": PARAMS.alpha}
    events = [e for e in timeline.events if e.source != "shot"]
    return Outcome(
        level=world.level,
        truth=truth,
        total=total,
        found={
            "position prior": things_of(position_prior(events)),
            "lagged correlation": things_of(
                lagged_correlation(events, world.duration_s + 1, **limits)
            ),
            "VAR t-test": things_of(var_test(events, world.duration_s + 1, **limits)),
            "ours": things_of(type_edges(document)),
        },
        placebo_false=document.placebo_edges or 0,
        placebo_rate=document.placebo_rate,
        confidence=confidences(document, truth, SEEN_AS),
    )
