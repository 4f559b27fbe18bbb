"""Mutated containers: always a verdict, never the death of the worker."""

from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_media import noise_free_scene, tone, write_video

from engines.errors import RefusedError
from engines.media.inspect import inspect_here
from engines.runtime.child import ChildPool

TIMEOUT_S = 20.0
BUDGET_S = 4.0

_place = st.floats(0, 1, exclude_max=True)
_change = st.one_of(
    st.tuples(st.just("set"), _place, st.binary(min_size=1, max_size=8)),
    st.tuples(st.just("cut"), _place, st.integers(1, 4096)),
    st.tuples(st.just("repeat"), _place, st.integers(1, 4096)),
    st.tuples(st.just("flip"), _place, st.integers(0, 7)),
    st.tuples(st.just("end"), _place, st.none()),
    st.tuples(
        st.just("number"),
        _place,
        st.sampled_from([0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]),
    ),
)
_changes = st.lists(_change, min_size=1, max_size=6)


def _mutate(data: bytes, changes: list[tuple[str, float, object]], head: int) -> bytes:
    """Apply the changes; half of all places lie in the first ``head`` bytes, the headers."""
    out = bytearray(data)
    for what, place, value in changes:
        if not out:
            break
        size = min(len(out), head) if place < 0.5 else len(out)
        at = int(place * 2 % 1 * size)
        if what == "set" and isinstance(value, bytes):
            out[at : at + len(value)] = value
        elif what == "cut" and isinstance(value, int):
            del out[at : at + value]
        elif what == "repeat" and isinstance(value, int):
            out[at:at] = out[at : at + value]
        elif what == "flip" and isinstance(value, int):
            out[at] ^= 1 << value
        elif what == "end":
            del out[max(1, at) :]
        elif what == "number" and isinstance(value, int):
            out[at : at + 4] = value.to_bytes(4, "big")
    return bytes(out)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("seeds")
    scene = noise_free_scene(1, 20, (96, 64))
    beep = tone(440, 0.8)
    made = [
        hostile.small_mp4(folder, faststart=True),
        write_video(folder / "a.mkv", scene, audio=beep, codec="mpeg4"),
        write_video(
            folder / "a.webm", scene, codec="libvpx-vp9", audio=beep, audio_codec="libopus"
        ),
        write_video(folder / "a.avi", scene, codec="mpeg4", audio=beep, audio_codec="pcm_s16le"),
        write_video(folder / "a.ts", scene, audio=beep),
        write_video(folder / "a.mpg", scene, codec="mpeg2video", audio=beep, audio_codec="mp2"),
        write_video(folder / "a.mp3", [], audio=beep, audio_codec="libmp3lame"),
        write_video(folder / "a.wav", [], audio=beep, audio_codec="pcm_s16le"),
        write_video(folder / "a.flac", [], audio=beep, audio_codec="flac"),
        write_video(folder / "a.ogg", [], audio=beep, audio_codec="libopus"),
        write_video(folder / "b.mov", scene, codec="mjpeg"),
        write_video(folder / "b.flv", scene, codec="flv"),
    ]
    return [p.read_bytes() for p in made]


@pytest.fixture(scope="module")
def pool() -> Iterator[ChildPool]:
    with ChildPool(memory_bytes=4 * 2**30) as started:
        yield started


def _verdict(pool: ChildPool, path: Path) -> str:
    """Any other error than a refusal, a crash and a kill at the limit fail the test."""
    try:
        return pool.run(TIMEOUT_S, inspect_here, path, BUDGET_S, second_look=False).verdict
    except RefusedError:
        return "refused"


def _try_all(pool: ChildPool, seeds: list[bytes], folder: Path, examples: int) -> dict[str, int]:
    counts = dict.fromkeys(("complete", "partial", "refused"), 0)
    path = folder / "mutated"

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, len(seeds) - 1), _changes)
    def mutated(seed: int, changes: list[tuple[str, float, object]]) -> None:
        path.write_bytes(_mutate(seeds[seed], changes, 2048))
        counts[_verdict(pool, path)] += 1

    mutated()
    return counts


def test_three_hundred_mutations(pool: ChildPool, seeds: list[bytes], tmp_path: Path) -> None:
    counts = _try_all(pool, seeds, tmp_path, 300)
    assert sum(counts.values()) >= 300
    assert all(counts.values()), counts


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_mutations(pool: ChildPool, seeds: list[bytes], tmp_path: Path) -> None:
    counts = _try_all(pool, seeds, tmp_path, 2000)
    assert sum(counts.values()) >= 2000


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.timeout(1800)
def test_mutations_of_the_corpus(pool: ChildPool, corpus_dir: Path, tmp_path: Path) -> None:
    small = [p for p in sorted((corpus_dir / "odd").iterdir()) if 0 < p.stat().st_size < 120_000]
    counts = _try_all(pool, [p.read_bytes() for p in small], tmp_path, 2000)
    assert sum(counts.values()) >= 2000
