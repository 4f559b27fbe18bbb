"""pose: runs in the model child, without the libraries that ``actions`` needs."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from engines.actions.pose.find import LookedAt, find_people
from engines.contracts.actions import PoseDocument, PoseParams
from engines.contracts.media import SampleDocument
from engines.media.samples import SampleArchive
from tasks.compute.call import StageCall

JOINTS = "joints.npy"
WORLD = "world.npy"
PTS = "pose_pts.npy"


def pose(call: StageCall[PoseParams]) -> PoseDocument:
    """People with their landmarks over time; rows as blobs."""
    sampled = call.document("sample", SampleDocument)
    if "people.zip" in call.inputs:
        pts = np.load(call.inputs["people_pts.npy"])
    else:
        pts = np.array([sample.pts for sample in sampled.samples], np.int64)
    with SampleArchive(call.inputs.get("people.zip") or call.inputs["samples.zip"]) as archive:
        document, rows = find_people(
            _pictures(archive, pts),
            _looked_at(sampled),
            call.params.model_copy(update={"threads": call.threads}),
        )
    np.save(call.work_dir / JOINTS, rows.joints)
    np.save(call.work_dir / WORLD, rows.world)
    np.save(call.work_dir / PTS, rows.pts)
    return document


def _pictures(
    archive: SampleArchive, pts: npt.NDArray[np.int64]
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    for name, time in zip(archive.names, pts, strict=True):
        yield int(time), archive.read(name)


def _looked_at(sampled: SampleDocument) -> LookedAt:
    base = Fraction(sampled.time_base_num, sampled.time_base_den)
    people = sampled.people
    step_s = people.step_s if people is not None else sampled.sample_step_s
    skipped_s = people.skipped_s if people is not None else 0.0
    # The whole picture's length, not that from the first kept picture to the last.
    video = sampled.video
    first, last = (video.first_pts, video.last_pts) if video is not None else (None, None)
    whole_s = float((last - first) * base) if first is not None and last is not None else 0.0
    degraded = (
        f"no pictures were kept for following people: it looked at {1 / step_s:.2g} samples a "
        "second, fast movements are missed"
    )
    return LookedAt(
        time_base=base,
        rate_hz=1 / step_s,
        covered_s=max(0.0, whole_s - skipped_s),
        skipped_s=skipped_s,
        degraded=() if people is not None else (degraded,),
    )
