"""Worlds rendered to real video and read back by the pipeline's own engines.

A ball jumps aside, a lamp flashes, a bell clicks. The three are wired as a pair with a bystander,
a chain or a fork, with any of them as the first; what the decoder, the shot detector, the sound
labels and the timeline make of the file is mined, and the truth is that of re-simulation.
"""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from numpy.typing import NDArray

from engines.causal.miner import mine
from engines.causal.signals import MotionSignals
from engines.causal.timeline import fuse
from engines.contracts.base import Coverage
from engines.contracts.causal import EventsDocument, MinerParams
from engines.contracts.media import SampleParams, ShotParams
from engines.contracts.speech import ListenDocument
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.shots import detect
from engines.speech.sounds import HeardSpeech, label_sounds
from flows.bench.causal_baselines import Pairs
from flows.bench.causal_world import Tally, type_edges
from flows.bench.causal_world_simulation import (
    Mechanism,
    Occurrences,
    Source,
    World,
    simulate,
    true_edges,
)

WIDTH, HEIGHT, FPS, RATE_HZ = 160, 96, 25, 16_000
THINGS = ("ball", "lamp", "bell")
SEEN_AS = {"motion:burst": "ball", "light:on": "lamp", "sound:onset": "bell", "sound:tone": "bell"}
DURATION_S = 110.0
ROLL_S, FLASH_S, CLICK_S = 0.36, 0.28, 0.08
PARAMS = MinerParams(permutations=200, placebo_runs=0)

Picture = NDArray[np.uint8]
Sound = NDArray[np.float32]


def pixel_world(number: int) -> World:
    """World ``number``: wiring and first thing in turn, lags and times by chance."""
    first, second, third = list(permutations(THINGS))[number % 6]
    rng = np.random.default_rng([number, 77])

    def rule(cause: str, effect: str) -> Mechanism:
        return Mechanism(cause, effect, float(rng.uniform(0.5, 1.4)), 0.03, 1.0)

    sources = [Source(first, "random", 5.5)]
    wiring = number // 6 % 3
    if wiring == 0:
        rules = [rule(first, second)]
        sources.append(Source(third, "random", 6.5))
    elif wiring == 1:
        rules = [rule(first, second), rule(second, third)]
    else:
        rules = [rule(first, second), rule(first, third)]
    return World("pixels", 5, number, tuple(sources), tuple(rules), DURATION_S)


def _pictures(world: World, happened: Occurrences) -> Iterator[Picture]:
    rng = np.random.default_rng(world.seed)
    ground = np.full((HEIGHT, WIDTH, 3), 70, dtype=np.int16)
    ground += rng.integers(-12, 12, size=(HEIGHT // 8, WIDTH // 8, 1)).repeat(8, 0).repeat(8, 1)
    rolls, flashes = np.array(happened.of("ball")), np.array(happened.of("lamp"))
    for n in range(int(world.duration_s * FPS)):
        time = n / FPS
        picture = ground.copy()
        before = rolls[rolls <= time]
        place = float(np.clip((time - before) / ROLL_S, 0.0, 1.0).sum())
        phase = place % 2.0
        at = 20 + int(80 * (phase if phase <= 1.0 else 2.0 - phase))
        picture[60:80, at : at + 20] = (200, 190, 60)
        if len(flashes) and ((time - flashes >= 0) & (time - flashes < FLASH_S)).any():
            picture[8:32, 110:146] = (250, 250, 235)
        yield np.clip(picture, 0, 255).astype(np.uint8)


def _sound(world: World, happened: Occurrences) -> Sound:
    rng = np.random.default_rng(world.seed)
    out = rng.normal(0.0, 0.0008, int(world.duration_s * RATE_HZ))
    length = int(CLICK_S * RATE_HZ)
    shape = np.exp(-np.arange(length) / (0.02 * RATE_HZ))
    for time in happened.of("bell"):
        at = int(time * RATE_HZ)
        part = out[at : at + length]
        part += 0.5 * (rng.normal(size=length) * shape)[: len(part)]
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


def mined_things(timeline: EventsDocument) -> Pairs:
    """Edges between the things behind the event types."""
    found = type_edges(mine(timeline.events, timeline.observed, PARAMS))
    named = {(SEEN_AS.get(a, a), SEEN_AS.get(b, b)) for a, b in found}
    return frozenset((a, b) for a, b in named if a != b)


def judge_pixels(num_worlds: int) -> Tally:
    """Render, read back and mine ``num_worlds`` worlds against re-simulation."""
    tally = Tally()
    for number in range(num_worlds):
        world = pixel_world(number * 5)
        with TemporaryDirectory() as name:
            folder = Path(name)
            render(world, folder / "world.mp4")
            timeline = read_back(folder / "world.mp4", folder)
        tally.add(mined_things(timeline), true_edges(world)[0])
    return tally
