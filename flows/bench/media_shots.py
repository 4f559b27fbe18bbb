"""Shot detection on made videos with exact truth, beside PySceneDetect in the same run."""

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from engines.contracts.media import SampleParams, ShotParams
from engines.media.probe import probe
from engines.media.sample import decode
from engines.media.shots import detect
from flows.bench import BenchRow
from flows.bench.media_ways import scenedetect_starts
from flows.bench.shot_set import MadeVideo, make_shot_set, match

CUT_MUST: Final = 0.98
GRADUAL_MUST: Final = 0.85
_GRADUAL: Final = ("dissolve", "wipe", "fade")
_SAYS_SHOTS: Final = re.compile(r"cuts ?=|\b(?:0|no)(?: hard)? cuts?\b|\b1 shot\b")
_CUTS: Final = re.compile(r"cuts ?= ?\[([\d, ]*)\]")
_SPANS: Final = re.compile(r"(dissolve|wipe|fade) frames (\d+)-(\d+)")
_FADES: Final = re.compile(r"scene starts[^\[]*\[([\d, ]+)\]")
_FADE_REACH: Final = 12
"""Half a second: the manifest gives one frame for a fade, not its span."""

UNCUT_CLIPS: Final = (
    "act_soccer_juggling_g23.avi",
    "act_cartwheel.avi",
    "act_wave_policeman.avi",
    "act_segway_1.mp4",
    "act_segway_street.mp4",
    "act_eye_makeup.avi",
    "act_basketball.mp4",
    "act_archery.avi",
    "scene_bottles.mp4",
    "scene_cars_top.mp4",
    "scene_toddler_reads.mp4",
    "scene_chaplin.mp4",
    "scene_bbb_51.mp4",
    "scene_rabbit_toy.mp4",
    "scene_crystal.mp4",
    "scene_london_aerial.mp4",
    "ocr_made_lines.mp4",
)
"""Clips of the shared corpus without any cut; used where the corpus is there."""


def engine_starts(path: Path) -> list[int]:
    """First frames of new shots by this engine with its defaults."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = decode(path, probe(path), SampleParams(budget=2, long_edge=64), folder)
        found = detect(document, folder, ShotParams())
    return [s.start_frame for s in found.shots[1:]]


def f1(hits: int, lost: int, extra: int) -> float:
    """Harmonic mean of precision and recall."""
    return 2 * hits / (2 * hits + lost + extra) if hits else 0.0


def figures_of(
    finder: Callable[[Path], list[int]], videos: Iterable[MadeVideo]
) -> dict[str, float | int | str | None]:
    """Counts and F1 of one finder; everything that belongs to no change counts against both."""
    counts: Counter[tuple[str, bool]] = Counter()
    for video in videos:
        counts.update(match(finder(video.path), video))
    extra = sum(
        n for (kind, hit), n in counts.items() if not hit and kind not in (*_GRADUAL, "cut")
    )
    slow_hits = sum(counts[kind, True] for kind in _GRADUAL)
    slow_lost = sum(counts[kind, False] for kind in _GRADUAL)
    return {
        "cut_f1": round(f1(counts["cut", True], counts["cut", False], extra), 4),
        "gradual_f1": round(f1(slow_hits, slow_lost, extra), 4),
        "cuts": counts["cut", True] + counts["cut", False],
        "gradual": slow_hits + slow_lost,
        "flashes_taken_for_cuts": counts["flash", False],
        "pans_taken_for_cuts": counts["whip pan", False],
        "extra": extra,
        **{f"lost_{kind}": counts[kind, False] for kind in ("cut", *_GRADUAL)},
    }


def corpus_videos(corpus: Path) -> list[MadeVideo]:
    """The shared corpus's real clips whose manifest says where their shots begin.

    The words of its ``ground_truth`` column: ``cuts=[50,90]``, ``0 cuts``, ``1 shot``,
    ``dissolve frames 40-60``, and ``scene starts ... [0,84,167]`` for a clip of fades.
    """
    found = []
    with (corpus / "manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            truth = row["ground_truth"]
            path = corpus / row["file"]
            if not row["file"].startswith("real/") or not _SAYS_SHOTS.search(truth):
                continue
            named = _CUTS.search(truth)
            fades = _FADES.search(truth)
            spans = [(int(a), int(b), kind) for kind, a, b in _SPANS.findall(truth)]
            if fades:
                starts = _numbers(fades[1])[1:]
                spans += [(s - _FADE_REACH, s + _FADE_REACH, "fade") for s in starts]
            found.append(MadeVideo(path, cuts=_numbers(named[1]) if named else [], gradual=spans))
    return found


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def shot_rows(corpus: Path | None, folder: Path, *, videos: int, takes: int) -> list[BenchRow]:
    """One row for each finder on the same files: the made ones, and the corpus's real clips."""
    clips = [corpus / "real" / name for name in UNCUT_CLIPS] if corpus else []
    made = make_shot_set(
        folder / "shots", [c for c in clips if c.exists()], seed=2024, videos=videos, takes=takes
    )
    rows = _compared("made set", made)
    if corpus is not None:
        rows += _compared("real clips", corpus_videos(corpus))
    return rows


def _compared(name: str, videos: list[MadeVideo]) -> list[BenchRow]:
    ours = figures_of(engine_starts, videos)
    content = figures_of(lambda p: scenedetect_starts(p, "content"), videos)
    adaptive = figures_of(lambda p: scenedetect_starts(p, "adaptive"), videos)
    cut, gradual = float(ours["cut_f1"] or 0), float(ours["gradual_f1"] or 0)
    better = all(
        cut > float(other["cut_f1"] or 0) and gradual > float(other["gradual_f1"] or 0)
        for other in (content, adaptive)
    )
    return [
        BenchRow(
            name=f"shots, {name}: ours",
            figures=ours,
            must=f"cut F1 >= {CUT_MUST}, gradual F1 >= {GRADUAL_MUST}, better than both below",
            holds=cut >= CUT_MUST and gradual >= GRADUAL_MUST and better,
        ),
        BenchRow(
            name=f"shots, {name}: PySceneDetect content", figures=content, must=None, holds=None
        ),
        BenchRow(
            name=f"shots, {name}: PySceneDetect adaptive", figures=adaptive, must=None, holds=None
        ),
    ]
