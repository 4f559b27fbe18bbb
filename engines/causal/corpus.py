"""Mining many videos together: what each contributes is made once, and added up.

A video's part holds its events as arrays and the lag counts of its shifted copies, made from
randomness that its own content seeds. So a corpus that grows by one video needs one new part and
the pooling; the result is the same as if all had been mined at once, in any order.
"""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engines.causal.candidates import make_bands
from engines.causal.miner import mine_table, nothing_to_mine
from engines.causal.null import NullCounts, draw_null, pool_null
from engines.causal.series import EventTimes, VideoEvents, event_times, join, most_frequent
from engines.contracts.causal import CausesDocument, MinerParams, PartParams
from engines.errors import EngineError


class Part(Protocol):
    """What pooling asks of a video; memory and files both have it."""

    @property
    def video(self) -> str:
        """Identity, as examples name it."""
        ...

    @property
    def times(self) -> EventTimes:
        """Its events."""
        ...

    @property
    def null(self) -> NullCounts:
        """Lag counts of its shifted copies; may be read anew at every call."""
        ...


@dataclass(frozen=True)
class VideoPart:
    """A part in memory."""

    video: str
    times: EventTimes
    null: NullCounts

    def write(self, path: Path) -> None:
        """Store it as a zip of arrays; the same part gives the same bytes."""
        arrays = {
            "names": np.array(self.times.names, dtype=np.str_),
            "time": self.times.time,
            "kind": self.times.kind.astype(np.int32),
            "ordinal": self.times.ordinal.astype(np.int32),
            "error": self.times.error,
            "spans": self.times.spans,
            "skipped_s": np.array(self.times.skipped_s),
            # Sorted cells lie close together: their distances take a fourth of the space.
            "cell": np.diff(self.null.cell, prepend=0).astype(np.uint32),
            "count": self.null.count.astype(np.uint16 if _small(self.null.count) else np.uint32),
            "shape": np.array([self.null.copies, self.null.num_types, self.null.num_bins]),
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name, array in arrays.items():
                # A fixed date: a part is named by its bytes.
                info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, "w") as out:
                    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)


def _small(count: NDArray[np.int32]) -> bool:
    return int(count.max(initial=0)) < 1 << 16


@dataclass(frozen=True)
class PartFile:
    """A part on disk; the counts, which are most of it, are read when they are needed."""

    video: str
    path: Path

    @property
    def times(self) -> EventTimes:
        """Its events."""
        with self._open() as arrays:
            return EventTimes(
                names=tuple(str(name) for name in arrays["names"]),
                time=arrays["time"],
                kind=arrays["kind"].astype(np.int64),
                ordinal=arrays["ordinal"].astype(np.int64),
                error=arrays["error"],
                spans=arrays["spans"],
                skipped_s=float(arrays["skipped_s"]),
            )

    @property
    def null(self) -> NullCounts:
        """Lag counts of its shifted copies."""
        with self._open() as arrays:
            copies, num_types, num_bins = (int(n) for n in arrays["shape"])
            cell = np.cumsum(arrays["cell"], dtype=np.int64)
            return NullCounts(cell, arrays["count"].astype(np.int32), copies, num_types, num_bins)

    def _open(self) -> "np.lib.npyio.NpzFile":
        opened = np.load(self.path, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            msg = f"not a part of a corpus: {self.path.name}"
            raise EngineError(msg)
        return opened


def video_part(video: VideoEvents, params: PartParams) -> VideoPart:
    """Make the part of one video; it depends on nothing but its events and ``params``."""
    times = event_times(video)
    rng = np.random.default_rng([params.seed, int.from_bytes(times.fingerprint()[:16], "big")])
    bands = make_bands(params.max_lag_s, params.lag_bins)
    table = join([times], gap_s=0.0)
    return VideoPart(
        video.video, times, draw_null(table, bands, permutations=params.permutations, rng=rng)
    )


def mine_corpus(videos: Sequence[VideoEvents], params: MinerParams | None = None) -> CausesDocument:
    """Mine many videos together, from their timelines; see ``mine_parts``."""
    params = params or MinerParams()
    return mine_parts([video_part(v, PartParams.of(params)) for v in videos], params)


def mine_parts(parts: Sequence[Part], params: MinerParams) -> CausesDocument:
    """Mine many videos together; edges have scope ``corpus``.

    The spans of the edges reach from 0 to the lag, since no clock is shared. The result does
    not depend on the order of the parts; the same part twice counts twice, so that it is the
    caller who says what one video is.

    Args:
        parts: made with the same lags, permutations and seed as ``params`` says.
        params: of the miner.
    """
    read = [(part, part.times) for part in parts]
    read.sort(key=lambda item: (item[1].fingerprint(), item[0].video))
    ordered = [part for part, _ in read]
    times = [t for _, t in read]
    skipped = sum(t.skipped_s for t in times)
    names = [part.video for part in ordered]
    if not times:
        return nothing_to_mine("0 videos", "corpus")
    used, num_rare = most_frequent(times, params.max_types)
    table = join(used, gap_s=2 * params.max_lag_s + 1.0)

    def nulls() -> Iterator[NullCounts]:
        return (_null_of(part, params) for part in ordered)

    null = pool_null(
        table,
        make_bands(params.max_lag_s, params.lag_bins),
        [t.names for t in times],
        nulls,
        permutations=params.permutations,
        min_count=params.min_effective_n,
    )
    return mine_table(
        table,
        null,
        params,
        scope="corpus",
        videos=names,
        skipped_s=skipped,
        num_rare=num_rare,
    )


def _null_of(part: Part, params: MinerParams) -> NullCounts:
    null = part.null
    if null.num_bins != params.lag_bins:
        msg = f"{part.video} was counted in {null.num_bins} lag bins, not in {params.lag_bins}"
        raise EngineError(msg)
    return null
