"""The benchmark's truth is right, and its bookkeeping cannot flatter a finder."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from flows.bench import BenchReport, BenchRow
from flows.bench.media_clips import repeat_clip, write_clip
from flows.bench.media_shots import engine_starts, f1, figures_of
from flows.bench.shot_set import MadeVideo, drawn_clip, make_shot_set, match


def _video() -> MadeVideo:
    return MadeVideo(
        Path("v.mp4"),
        cuts=[50, 120],
        gradual=[(200, 220, "dissolve")],
        traps=[(80, 83, "flash")],
    )


def test_a_perfect_finder_scores_one() -> None:
    assert Counter(match([50, 121, 210], _video())) == Counter(
        {("cut", True): 2, ("dissolve", True): 1}
    )
    figures = figures_of(lambda _: [50, 120, 210], [_video()])
    assert (figures["cut_f1"], figures["gradual_f1"], figures["extra"]) == (1.0, 1.0, 0)


def test_what_belongs_to_nothing_counts_against_the_finder() -> None:
    found = Counter(match([50, 81, 150, 205, 215], _video()))
    assert found["cut", False] == 1
    assert found["flash", False] == 1
    assert found["extra", False] == 1
    assert found["twice in dissolve", False] == 1
    figures = figures_of(lambda _: [50, 81, 150, 205, 215], [_video()])
    assert figures["extra"] == 3
    assert figures["cut_f1"] == pytest.approx(f1(1, 1, 3), abs=1e-4)
    assert figures_of(lambda _: [], [_video()])["cut_f1"] == 0


def test_the_set_has_the_frames_its_truth_speaks_of(tmp_path: Path) -> None:
    made = make_shot_set(tmp_path, [], seed=5, videos=2, takes=4)
    assert len({m.path.suffix for m in made}) == 2
    for video in made:
        with av.open(str(video.path)) as container:
            frames = sum(1 for _ in container.decode(video=0))
        marks = [*video.cuts, *(b for _, b, _ in video.gradual), *(b for _, b, _ in video.traps)]
        assert all(0 < m < frames for m in marks)
        assert len(video.cuts) + len(video.gradual) >= 3
    again = make_shot_set(tmp_path / "again", [], seed=5, videos=2, takes=4)
    assert [m.cuts for m in again] == [m.cuts for m in made]


def test_a_drawn_take_has_no_jump_in_it() -> None:
    for seed in range(4):
        take = drawn_clip((96, 54), 120, np.random.default_rng(seed))
        steps = [float(np.abs(a.astype(int) - b).mean()) for a, b in pairwise(take)]
        assert max(steps) < 4 * float(np.median(steps)) + 4


@pytest.mark.slow
def test_the_engine_on_a_small_set(tmp_path: Path) -> None:
    made = make_shot_set(tmp_path, [], seed=9, videos=3, takes=8)
    figures = figures_of(engine_starts, made)
    assert float(figures["cut_f1"] or 0) > 0.9


def test_a_repeated_clip_is_as_long_as_it_says(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", "libx264", (96, 64), 2, rate=10)
    path = repeat_clip(clip, tmp_path / "b.mp4", 5)
    with av.open(str(path)) as container:
        times = [f.time for f in container.decode(video=0)]
    assert len(times) == 100
    assert times == sorted(set(times))
    assert 9.5 < (times[-1] or 0) < 11.5


def test_a_report_fails_with_one_missed_row() -> None:
    rows = [BenchRow(name=n, figures={}, must=None, holds=h) for n, h in (("a", True), ("b", None))]
    assert BenchReport(rows=tuple(rows)).ok
    missed = BenchRow(name="c", figures={}, must="x", holds=False)
    assert not BenchReport(rows=(*rows, missed)).ok
