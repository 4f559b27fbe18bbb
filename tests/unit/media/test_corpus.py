"""The shared corpus against its manifest: counts, sizes, sound, cuts, refusals.

The counts of the manifest come from ffprobe 5.1 (``-count_frames``), an independent build of the
decoders; docs/media.md explains the differences one by one.
"""

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.contracts.media import Inspection
from engines.errors import RefusedError
from engines.media.inspect import KILL_AFTER_S, inspect_here
from engines.runtime.child import ChildPool

pytestmark = [pytest.mark.corpus, pytest.mark.slow, pytest.mark.timeout(3000)]

EXPLAINED = {
    "odd/garbage_prefix_200k.mp3": "MP3 behind 200 kB of junk; ffprobe 5.1 took the junk for AMR",
}
TOO_LONG = {"odd/long_6min_4k60_av1.mp4"}
"""Not counted in the manifest either; needs minutes to decode."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ChildPool]:
    with ChildPool(memory_bytes=8 * 2**30) as started:
        yield started


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _misses(row: dict[str, str], found: Inspection) -> list[str]:
    truth, misses = row["ground_truth"], []
    frames, sound_s = int(_number(row["frames"])), _number(row["audio_s"])
    if frames and "audio only" not in truth:
        video = found.video
        if video is None or video.frames_decoded != frames:
            misses.append(f"frames {video and video.frames_decoded} != {frames}")
        else:
            size = (int(row["width"]), int(row["height"]))
            if abs(_number(row["rotation"])) % 180 == 90:
                size = size[::-1]
            if (video.width, video.height) != size:
                misses.append(f"size {video.width}x{video.height} != {size}")
    if sound_s and (found.audio is None or abs((found.audio.duration_s or 0) - sound_s) > 0.15):
        misses.append(f"sound {found.audio and found.audio.duration_s} != {sound_s}")
    cuts = re.search(r"cuts=(\[[\d, ]*\])", truth)
    starts = [s.start_frame for s in found.shots[1:]]
    if cuts:
        wanted = ast.literal_eval(cuts[1])
        if len(wanted) != len(starts) or any(
            abs(w - s) > 1 for w, s in zip(wanted, starts, strict=True)
        ):
            misses.append(f"cuts {starts} != {wanted}")
    elif re.search(r"\b0 cuts|1 shot\b|no cuts", truth) and starts:
        misses.append(f"cuts {starts} where there are none")
    return misses


def test_every_file_is_what_the_manifest_says(pool: ChildPool, corpus_dir: Path) -> None:
    wrong = {}
    with (corpus_dir / "manifest.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["file"] not in TOO_LONG]
    for row in rows:
        try:
            found = pool.run(KILL_AFTER_S, inspect_here, corpus_dir / row["file"])
        except RefusedError as error:
            gives = _number(row["frames"]) + _number(row["audio_s"])
            if gives and "must be refused" not in row["ground_truth"]:
                wrong[row["file"]] = [f"refused: {error}"]
            continue
        misses = _misses(row, found)
        if "must be refused" in row["ground_truth"]:
            misses.append("not refused")
        if misses:
            wrong[row["file"]] = misses
    assert len(rows) > 100
    assert set(wrong) == set(EXPLAINED), wrong


def test_amplification_is_bounded(pool: ChildPool, corpus_dir: Path) -> None:
    """Six minutes of 4K in one megabyte: stopped in time, said, and the sound is whole."""
    path = corpus_dir / "odd" / "long_6min_4k60_av1.mp4"
    found = pool.run(KILL_AFTER_S, inspect_here, path, 5.0, second_look=False)
    assert found.verdict == "partial"
    assert any(p.code == "stopped" for p in found.problems)


@pytest.mark.parametrize(
    ("name", "texts"),
    [("odd/subs_two_langs.mkv", ["Hello rabbit", "Bonjour le lapin", "Goodbye rabbit"])],
)
def test_text_tracks(name: str, texts: list[str], corpus_dir: Path) -> None:
    from engines.media.probe import probe

    cues = probe(corpus_dir / name).subtitles
    assert sorted(c.text for c in cues) == sorted(texts)
    assert {c.language for c in cues} == {"eng", "fra"}
    # 23 ms: the container starts its picture behind the priming of its sound.
    assert min(c.start_s for c in cues) == pytest.approx(0.523)
