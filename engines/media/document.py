"""From the state at the end of the decode pass to the document and its blobs."""

import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engines.contracts.base import Coverage
from engines.contracts.media import (
    AudioStream,
    MediaProbe,
    PeoplePictures,
    Problem,
    Sample,
    SampleDocument,
    Verdict,
    VideoStream,
)
from engines.errors import EncryptedError, NothingDecodedError
from engines.media.doubt import REACH, doubtful_frames
from engines.media.limits import RAW_DEMUXERS
from engines.media.onepass import OnePass
from engines.media.people import FILE as PEOPLE_FILE
from engines.media.problems import PARTIAL, problems_of
from engines.media.signals import SIGNAL_NAMES, THUMB_SHAPE
from engines.media.sound import RATE_HZ, save_npy
from engines.media.structure import Structure
from engines.media.workspace import FILES, Workspace

_VARIABLE_SHARE = 0.01
_VARIABLE_STEP = 0.1
_THUMB_BLOCK = 256
_SIGNAL_BLOCK = 8192
_MOTION = SIGNAL_NAMES.index("change1")

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


def assemble(
    one: OnePass, probe: MediaProbe, structure: Structure, workspace: Workspace
) -> SampleDocument:
    """The document of a finished pass.

    Raises:
        NothingDecodedError: neither a picture nor sound came out.
        EncryptedError: the same, of a file with encrypted samples.
    """
    for name in FILES:
        workspace.file(name).flush()
    pts = _read_pts(one, workspace)
    video = _video(one, probe, pts)
    audio = _audio(one, probe)
    if video is None and audio is None:
        _refuse_nothing(one, structure)
    start_s = one.start_s
    end_s = _end_s(one, audio)
    problems = problems_of(one, probe, structure, end_s)
    verdict: Verdict = "partial" if any(p.code in PARTIAL for p in problems) else "complete"
    base = one.video_clock.time_base
    return SampleDocument(
        coverage=_coverage(one, probe, start_s, end_s, problems),
        media=probe.media.model_copy(
            update={"duration_s": max(0.0, end_s - start_s), "start_s": start_s}
        ),
        video=video,
        audio=audio,
        time_base_num=base.numerator,
        time_base_den=base.denominator,
        samples=_samples(one, workspace),
        people=_people(one),
        sample_step_s=one.sampler.current_step_s,
        signal_names=SIGNAL_NAMES,
        slow_lag=one.slow_lag,
        audio_start_pts=one.sound.start or 0,
        audio_gaps=tuple(one.sound.gaps),
        problems=tuple(problems),
        verdict=verdict,
    )


def _refuse_nothing(one: OnePass, structure: Structure) -> None:
    if structure.encrypted:
        msg = "the samples are encrypted and no key is given"
        raise EncryptedError(msg)
    if one.damage.packets:
        reason = f"{one.damage.packets} damaged packets"
    else:
        reason = "what the packets hold decodes to nothing" if one.seen_streams else "no packets"
    reason = one.damage.stopped or reason
    msg = f"not one picture or sample of sound decodes ({reason})"
    raise NothingDecodedError(msg)


def _read_pts(one: OnePass, workspace: Workspace) -> Int64Array:
    """int64 [num_frames + 1]: the frames' times and the end of the last one."""
    pts = np.fromfile(workspace.path("pts"), dtype=np.int64)
    return np.append(pts, one.video_clock.end) if len(pts) else pts


def _is_variable(pts: Int64Array) -> bool:
    """Whether more than one frame in a hundred lasts a tenth longer or shorter than usual."""
    steps = np.diff(pts[:-1])
    if len(steps) == 0:
        return False
    usual = float(np.median(steps))
    odd = np.abs(steps - usual) > max(1.5, _VARIABLE_STEP * usual)
    return bool(odd.mean() > _VARIABLE_SHARE)


def _video(one: OnePass, probe: MediaProbe, pts: Int64Array) -> VideoStream | None:
    if probe.video is None or one.num_frames == 0:
        return None
    clock = one.video_clock
    raw = bool(set(probe.media.container.split(",")) & RAW_DEMUXERS)
    return probe.video.model_copy(
        update={
            "frames_decoded": one.num_frames,
            "first_pts": int(pts[0]),
            "last_pts": int(pts[-2]),
            "time_estimated": raw or clock.estimated > 0,
            "variable_rate": _is_variable(pts),
        }
    )


def _audio(one: OnePass, probe: MediaProbe) -> AudioStream | None:
    if probe.audio is None or one.sound.start is None:
        return None
    return probe.audio.model_copy(
        update={
            "start_s": one.sound.start / RATE_HZ,
            "duration_s": one.sound.decoded_s,
        }
    )


def _end_s(one: OnePass, audio: AudioStream | None) -> float:
    ends = []
    if one.num_frames:
        ends.append(float(one.video_clock.end * one.video_clock.time_base))
    if audio is not None and one.sound.start is not None:
        ends.append((one.sound.start + one.sound.written) / RATE_HZ)
    return max(ends, default=0.0)


def _coverage(
    one: OnePass, probe: MediaProbe, start_s: float, end_s: float, problems: list[Problem]
) -> Coverage:
    damaged = min(sum(e - s for s, e in one.damage.spans), max(0.0, end_s - start_s))
    codes = {p.code for p in problems}
    declared = probe.media.declared_duration_s
    missing = 0.0
    if codes & {"truncated", "stopped"} and declared is not None:
        missing = max(0.0, declared - (end_s - start_s))
    reasons = [p.message for p in problems if p.code in PARTIAL]
    return Coverage(
        covered_s=max(0.0, end_s - start_s - damaged),
        skipped_s=damaged + missing,
        reason="; ".join(dict.fromkeys(reasons))[:500] or None,
    )


def _signals(workspace: Workspace, first: int, last: int) -> FloatArray:
    """float32 [last - first, k]: rows of the signals as they lie in the workspace."""
    width = len(SIGNAL_NAMES)
    rows = np.fromfile(
        workspace.path("signals"),
        dtype=np.float32,
        count=(last - first) * width,
        offset=first * width * np.dtype(np.float32).itemsize,
    )
    return rows.reshape(-1, width)


def _samples(one: OnePass, workspace: Workspace) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            name=sample_name(c.frame),
            frame=c.frame,
            pts=c.pts,
            end_pts=c.end_pts,
            motion=float(_signals(workspace, c.frame, c.frame + 1)[0, _MOTION]),
            sharpness=c.sharpness,
        )
        for c in one.sampler.kept
    )


def _people(one: OnePass) -> PeoplePictures | None:
    people = one.people
    if people is None or not people.num_pictures:
        return None
    return PeoplePictures(
        num_pictures=people.num_pictures,
        step_s=people.step_s,
        width=people.width,
        height=people.height,
        skipped_s=people.skipped_s,
    )


def sample_name(frame: int) -> str:
    """Entry of the archive for a frame; names sort by time."""
    return f"{frame:08d}.jpg"


def write_blobs(one: OnePass, workspace: Workspace, out_dir: Path) -> None:
    """Write the blobs that ``SampleDocument`` names."""
    samples = ((c.frame, c.offset, c.size) for c in one.sampler.kept)
    _write_archive(out_dir / "samples.zip", workspace.path("pictures"), samples)
    if one.people is not None and one.people.num_pictures:
        kept = list(one.people.pictures())
        pieces = ((frame, offset, size) for frame, _, offset, size in kept)
        _write_archive(out_dir / "people.zip", workspace.path(PEOPLE_FILE), pieces)
        np.save(out_dir / "people_pts.npy", np.array([p for _, p, *_ in kept], dtype=np.int64))
    np.save(out_dir / "pts.npy", _read_pts(one, workspace))
    _write_signals(one.num_frames, workspace, out_dir)
    frames = _doubtful(one, workspace)
    np.save(out_dir / "thumb_frames.npy", frames)
    _write_thumbs(frames, workspace, out_dir)
    save_npy(workspace.path("sound"), out_dir / "audio.npy", one.sound.channels)


def _write_archive(target: Path, source: Path, pieces: Iterable[tuple[int, int, int]]) -> None:
    """Copy (frame, offset, size) pieces of ``source`` into an archive, stored."""
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive,
        source.open("rb") as pictures,
    ):
        for frame, offset, size in pieces:
            pictures.seek(offset)
            # A fixed date: the same pictures give the same bytes, and so the same hash.
            entry = zipfile.ZipInfo(sample_name(frame), (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, pictures.read(size))


def _write_signals(num_frames: int, workspace: Workspace, out_dir: Path) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (num_frames, len(SIGNAL_NAMES))}
    with (
        (out_dir / "signals.npy").open("wb") as out,
        workspace.path("signals").open("rb") as signals,
    ):
        np.lib.format.write_array_header_1_0(out, header)
        shutil.copyfileobj(signals, out)


def _doubtful(one: OnePass, workspace: Workspace) -> Int64Array:
    """``doubtful_frames`` of the whole file, block by block: memory does not grow with it."""
    found = [np.empty(0, dtype=np.int64)]
    for first in range(0, one.num_frames, _SIGNAL_BLOCK):
        last = min(first + _SIGNAL_BLOCK, one.num_frames)
        start, end = max(0, first - REACH), min(last + REACH, one.num_frames)
        frames = doubtful_frames(_signals(workspace, start, end), one.slow_lag) + start
        found.append(frames[(frames >= first) & (frames < last)])
    return np.concatenate(found)


def _write_thumbs(frames: Int64Array, workspace: Workspace, out_dir: Path) -> None:
    """Copy the thumbnails of these frames, block by block."""
    size = int(np.prod(THUMB_SHAPE))
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(frames), *THUMB_SHAPE)}
    with (
        (out_dir / "thumbs.npy").open("wb") as out,
        workspace.path("thumbs").open("rb") as thumbs,
    ):
        np.lib.format.write_array_header_1_0(out, header)
        for first, last in runs(frames):
            for start in range(first, last, _THUMB_BLOCK):
                thumbs.seek(start * size)
                out.write(thumbs.read((min(last, start + _THUMB_BLOCK) - start) * size))


def runs(frames: Int64Array) -> list[tuple[int, int]]:
    """Rising frame numbers as half-open runs."""
    if len(frames) == 0:
        return []
    breaks = np.flatnonzero(np.diff(frames) != 1)
    starts = np.concatenate([frames[:1], frames[breaks + 1]])
    ends = np.concatenate([frames[breaks], frames[-1:]]) + 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
