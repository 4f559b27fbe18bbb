"""Make the clips in tests/data/clips and the truth beside each of them.

    PYTHONPATH=tests/support:tests/data python tests/data/make_demo.py --sources DIR [--out DIR]

``--sources`` holds the free recordings named in ``SOURCES`` (README.md says where they come from
and under which licence); their SHA-256 is checked, so the same inputs and the same encoder build
give the same clips. The clips are committed: this script runs only when one is to be changed.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import gcd
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from lab_scene import SIZE, LabPlan, lab_picture, lab_sound, plan_lab
from made_media import click_train, cut_sequence, draw_text, noise_free_scene, text_box, write_video
from PIL import Image
from scipy.signal import resample_poly

Picture = npt.NDArray[np.uint8]
Sound = npt.NDArray[np.float32]
JsonObject = dict[str, object]

FPS = 25
RATE_HZ = 32_000
# Of the seeds tried, one whose lamp never switches within 0.2 s of a swing, so that each visible
# change is a change of its own, and precedes bells about as often as chance has it.
LAB_SEED = 2042
SPEECH_RMS = 0.09
ROOM_LEVEL = 0.0006
_ENCODER = {"preset": "slow", "crf": "25", "g": "250"}
# Quiet below this share of the loudest 20 ms counts as "not yet speaking".
_SPEECH_FLOOR = 0.06
_SPEECH_BLOCK_S = 0.02
_HOLE_STEP_PX = 40  # between the holes of the film strip on the title card

SOURCES = {
    "scene_rabbit_toy.mp4": "d0502ba7824940e90424847cd6094c858bab778703e382a0fbb71db533e4ad30",
    "scene_chaplin.mp4": "ca976f15c715cc60385d33145aa4e18be15882832fe64c2b2277ddb0699b1eb2",
    "scene_crystal.mp4": "ca98b7106e5bf6fb25f9074bf0972d974c41a66123f1cba6280d28e357efa0df",
    "jfk.flac": "63a4b1e4c1dc655ac70961ffbf518acd249df237e5a0152faae9a4a836949715",
    "librivox_sense_0870.wav": "b0557cf95c974d930577e58e46b7f068c432a6e3afcc286563d88922b2a5315c",
    "librivox_sense_0880.wav": "fbec491ef00ee734a67f0ee318e98c51c157b479e1629ff4f4426861ecac0414",
    "librivox_sense_0890.wav": "5793ffbdee55fb8bfd284943a6866864c832d9d4accf2661cabd39915c84ee10",
    "librivox_sense_0930.wav": "954adbf0b56ac8a148cbe77b39ca18d76b5f2a1e1f405565bd786ce3e68a68b7",
}
TRANSCRIPTS = {
    "jfk.flac": "And so my fellow Americans, ask not what your country can do for you, "
    "ask what you can do for your country.",
    "librivox_sense_0870.wav": "and mister john dashwood had then leisure to consider how much "
    "there might be prudently in his power to do for them",
    "librivox_sense_0880.wav": "he was not an ill disposed young man",
    "librivox_sense_0890.wav": "unless to be rather cold hearted and rather selfish is to be "
    "ill disposed",
    "librivox_sense_0930.wav": "he might even have been made amiable himself",
}


@dataclass(frozen=True)
class Caption:
    """A line of text shown in frames [start_frame, end_frame)."""

    text: str
    start_frame: int
    end_frame: int
    x: int
    y: int
    px: int

    def on(self, picture: Picture, frame: int) -> Picture:
        """The picture of this frame, with the line where it is due."""
        if self.start_frame <= frame < self.end_frame:
            return draw_text(picture, self.text, (self.x, self.y), self.px)
        return picture

    def truth(self) -> JsonObject:
        """Text, frames, and the box as x, y, w, h in shares of the picture."""
        left, top, right, bottom = text_box(self.text, (self.x, self.y), self.px)
        width, height = SIZE
        box = (left / width, top / height, (right - left) / width, (bottom - top) / height)
        return {
            "text": self.text,
            "start_frame": self.start_frame,
            "end_frame": self.end_frame,
            "box": [round(share, 4) for share in box],
        }


@dataclass(frozen=True)
class Shot:
    """One shot of the demo: what is seen, and for how many frames."""

    name: str
    n_frames: int
    source: str | None = None  # None: made here


@dataclass(frozen=True)
class Speech:
    """One recording, placed so that its file begins at ``file_start_s``."""

    source: str
    file_start_s: float


SHOTS = (
    Shot("title", 50),
    Shot("rabbit", 195, "scene_rabbit_toy.mp4"),
    Shot("chaplin", 241, "scene_chaplin.mp4"),
    Shot("crystal", 188, "scene_crystal.mp4"),
)
CAPTIONS = (
    Caption("REELGRAPH DEMO", 5, 50, 128, 152, 44),
    Caption("A WHITE RABBIT FIGURE", 75, 200, 40, 300, 30),
    Caption("THE TRAMP AND THE POLICEMAN", 270, 420, 100, 306, 28),
    Caption("A LOTUS MADE OF GLASS", 510, 640, 40, 300, 30),
)
SPEECHES = (
    Speech("librivox_sense_0870.wav", 2.2),
    Speech("jfk.flac", 9.6),
    Speech("librivox_sense_0890.wav", 21.2),
)
LAB_CAPTION = "BELL TEST 12 RUNS"


class Sources:
    """The free recordings, each checked before use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """Where the source is; raises ValueError when it is not the expected file."""
        path = self._folder / name
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != SOURCES[name]:
            msg = f"{name} is not the source expected: sha256 {found}, not {SOURCES[name]}"
            raise ValueError(msg)
        return path

    def pictures(self, name: str, n_frames: int) -> Iterator[Picture]:
        """Frames on the demo's clock: the newest source frame at each output time."""
        with av.open(str(self.path(name))) as container:
            decoded = container.decode(video=0)
            current = next(decoded)
            following = next(decoded, None)
            for index in range(n_frames):
                while following is not None and following.time <= index / FPS + 1e-6:
                    current, following = following, next(decoded, None)
                yield _fill(current.to_ndarray(format="rgb24"))

    def speech(self, name: str, rate_hz: int) -> Sound:
        """Mono float32 at ``rate_hz``, brought to one common loudness."""
        resampler = av.AudioResampler(format="flt", layout="mono")
        with av.open(str(self.path(name))) as container:
            source_hz = container.streams.audio[0].rate
            parts = [
                part.to_ndarray()[0]
                for frame in container.decode(audio=0)
                for part in resampler.resample(frame)
            ]
        common = gcd(source_hz, rate_hz)
        sound = resample_poly(np.concatenate(parts), rate_hz // common, source_hz // common)
        sound *= SPEECH_RMS / float(np.sqrt(np.mean(np.square(sound))))
        return np.asarray(np.clip(sound, -0.95, 0.95), dtype=np.float32)


def _fill(picture: Picture) -> Picture:
    """Scale to cover 640 x 360 and crop the middle."""
    height, width = picture.shape[:2]
    scale = max(SIZE[0] / width, SIZE[1] / height)
    new = (round(width * scale), round(height * scale))
    large = Image.fromarray(picture).resize(new, Image.Resampling.BICUBIC)
    left, top = (new[0] - SIZE[0]) // 2, (new[1] - SIZE[1]) // 2
    return np.array(large.crop((left, top, left + SIZE[0], top + SIZE[1])), dtype=np.uint8)


def _spoken_span(sound: Sound, rate_hz: int) -> tuple[float, float]:
    """First and last audible moment of a recording in seconds, to 20 ms."""
    block = round(_SPEECH_BLOCK_S * rate_hz)
    usable = sound[: sound.size // block * block].reshape(-1, block)
    level = np.sqrt(np.mean(np.square(usable), axis=1))
    loud = np.flatnonzero(level > _SPEECH_FLOOR * level.max())
    return float(loud[0]) * _SPEECH_BLOCK_S, float(loud[-1] + 1) * _SPEECH_BLOCK_S


def _place(
    track: Sound, rate_hz: int, sources: Sources, speeches: Sequence[Speech]
) -> list[JsonObject]:
    """Mix recordings into the track; returns the transcript with its times."""
    lines: list[JsonObject] = []
    for speech in speeches:
        sound = sources.speech(speech.source, rate_hz)
        start = round(speech.file_start_s * rate_hz)
        track[start : start + sound.size] += sound
        first_s, last_s = _spoken_span(sound, rate_hz)
        lines.append(
            {
                "text": TRANSCRIPTS[speech.source],
                "start_s": round(speech.file_start_s + first_s, 3),
                "end_s": round(speech.file_start_s + last_s, 3),
            }
        )
    return lines


def _write_truth(path: Path, truth: JsonObject) -> None:
    path.with_suffix(".truth.json").write_text(
        json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def title_picture(index: int) -> Picture:
    """A dark card between two strips of film that run to the left; uint8 [360, 640, 3] RGB."""
    width, height = SIZE
    glow = 1 - np.abs(np.linspace(-1, 1, height))[:, None, None] * np.ones((1, width, 1))
    picture = np.array([14, 20, 44]) + glow * np.array([24, 44, 84])
    for top in (16, height - 52):
        picture[top : top + 36] = (8, 8, 10)
        for left in range(-_HOLE_STEP_PX, width, _HOLE_STEP_PX):
            start = left + _HOLE_STEP_PX - (2 * index) % _HOLE_STEP_PX
            picture[top + 9 : top + 27, max(0, start) : max(0, start + 22)] = (226, 222, 208)
    return np.asarray(picture, dtype=np.uint8)


def _demo_pictures(
    sources: Sources, lab: LabPlan, captions: Sequence[Caption]
) -> Iterator[Picture]:
    parts: list[Iterable[Picture]] = [
        sources.pictures(shot.source, shot.n_frames)
        if shot.source
        else [title_picture(index) for index in range(shot.n_frames)]
        for shot in SHOTS
    ]
    parts.append(lab_picture(lab, index) for index in range(lab.n_frames))
    for frame, plain in enumerate(chain.from_iterable(parts)):
        picture = plain
        for caption in captions:
            picture = caption.on(picture, frame)
        yield picture


def make_demo(sources: Sources, out: Path) -> Path:
    """demo.mp4: four short shots with speech and captions, then twelve runs of the bell test."""
    lab = plan_lab(LAB_SEED, fps=FPS)
    lab_start = sum(shot.n_frames for shot in SHOTS)
    captions = (*CAPTIONS, Caption(LAB_CAPTION, lab_start + 25, lab_start + 275, 330, 316, 30))
    n_frames = lab_start + lab.n_frames

    track = np.zeros(round(n_frames / FPS * RATE_HZ), np.float32)
    track += ROOM_LEVEL * np.random.default_rng(1).standard_normal(track.size).astype(np.float32)
    transcript = _place(track, RATE_HZ, sources, SPEECHES)
    lab_start_s = lab_start / FPS
    first = round(lab_start_s * RATE_HZ)
    bells = lab_sound(lab, RATE_HZ)
    track[first : first + bells.size] += bells
    path = write_video(
        out / "demo.mp4",
        _demo_pictures(sources, lab, captions),
        FPS,
        options=_ENCODER,
        audio=track,
        audio_rate=RATE_HZ,
        container_options={"movflags": "faststart"},
    )
    cuts = np.cumsum([shot.n_frames for shot in SHOTS]).tolist()
    _write_truth(
        path,
        {
            "fps": FPS,
            "n_frames": n_frames,
            "width": SIZE[0],
            "height": SIZE[1],
            "cut_frames": cuts,
            "shots": [*(shot.name for shot in SHOTS), "bell test"],
            "texts": [caption.truth() for caption in captions],
            "transcript": transcript,
            "strike_frames": [lab_start + s for s in lab.strikes],
            "strike_motion_start_frames": [lab_start + s for s in lab.motion_starts],
            "bell_s": [round(lab_start_s + b, 6) for b in lab.bell_s],
            "distractor": {
                "what": "lamp switched on and off, unrelated to the bell",
                "on_frames": [lab_start + s for s in lab.lamp_on],
                "off_frames": [lab_start + s for s in lab.lamp_off],
            },
        },
    )
    return path


def make_cuts(out: Path) -> Path:
    """cuts.mp4: six made scenes, five hard cuts, and one white flash that is not a cut."""
    pictures, cuts = cut_sequence([40, 55, 30, 62, 48, 35], (320, 180), seed=20)
    flash = [150, 151]
    for frame in flash:
        pictures[frame] = np.full_like(pictures[frame], 250)
    path = write_video(out / "cuts.mp4", pictures, FPS, options=_ENCODER)
    truth: JsonObject = {"fps": FPS, "n_frames": len(pictures), "cut_frames": cuts}
    _write_truth(path, {**truth, "flash_frames": flash})
    return path


def make_talk(sources: Sources, out: Path) -> Path:
    """talk.mp4: the sound stream itself begins late, and two sentences are far apart."""
    rate_hz, start_s, n_frames = 16_000, 2.4, 300
    track = np.zeros(round((n_frames / FPS - start_s) * rate_hz), np.float32)
    track += ROOM_LEVEL * np.random.default_rng(2).standard_normal(track.size).astype(np.float32)
    sentences = (Speech("librivox_sense_0880.wav", 0.2), Speech("librivox_sense_0930.wav", 5.4))
    transcript = _place(track, rate_hz, sources, sentences)
    for line in transcript:
        line["start_s"] = round(float(str(line["start_s"])) + start_s, 3)
        line["end_s"] = round(float(str(line["end_s"])) + start_s, 3)
    path = write_video(
        out / "talk.mp4",
        noise_free_scene(31, n_frames, (320, 180)),
        FPS,
        options=_ENCODER,
        audio=track,
        audio_rate=rate_hz,
        audio_start_s=start_s,
    )
    truth: JsonObject = {"fps": FPS, "n_frames": n_frames, "cut_frames": []}
    _write_truth(path, {**truth, "audio_start_s": start_s, "transcript": transcript})
    return path


def make_late_audio(out: Path) -> Path:
    """late_audio.mp4: flashes and clicks at the same instants; the sound begins at 4.087 s."""
    start_s, n_frames = 4.087, 225
    flash_frames = [115, 150, 200]
    pictures = noise_free_scene(41, n_frames, (320, 180))
    for frame in flash_frames:
        pictures[frame] = np.full_like(pictures[frame], 250)
    click_s = [frame / FPS for frame in flash_frames]
    track = click_train([t - start_s for t in click_s], n_frames / FPS - start_s, rate=RATE_HZ)
    path = write_video(
        out / "late_audio.mp4",
        pictures,
        FPS,
        options=_ENCODER,
        audio=track,
        audio_rate=RATE_HZ,
        audio_start_s=start_s,
    )
    truth: JsonObject = {"fps": FPS, "n_frames": n_frames, "cut_frames": []}
    _write_truth(
        path,
        {**truth, "audio_start_s": start_s, "flash_frames": flash_frames, "click_s": click_s},
    )
    return path


def main() -> None:
    """Make all clips."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder of free recordings")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "clips")
    arguments = parser.parse_args()
    sources, out = Sources(arguments.sources), arguments.out
    out.mkdir(parents=True, exist_ok=True)
    made = [make_demo(sources, out), make_cuts(out), make_talk(sources, out), make_late_audio(out)]
    for path in made:
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
