"""A video of a drawn person goes through the decode pass, ``pose`` and ``actions``."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from made_media import write_video
from made_people import spread_arms

from engines.actions.drawing import Place, draw_person, room
from engines.contracts.actions import ActionsParams, PoseDocument, PoseParams
from engines.contracts.media import SampleParams
from engines.media import MediaLimits
from tasks.compute import media, pose
from tasks.compute.call import P, StageCall

FPS = 24
SECONDS = 2
SIZE = (384, 216)


def _frames(count: int, *, person: bool):
    for i in range(count):
        picture = room(SIZE[0] * 2, SIZE[1] * 2)
        if person:
            angle = 1.2 + np.sin(2 * np.pi * i / FPS)
            draw_person(picture, spread_arms(float(angle)), Place(380, 236, 300))
        yield cv2.resize(picture, SIZE, interpolation=cv2.INTER_AREA)


def _call(folder: Path, params: P, **inputs: Path) -> StageCall[P]:
    folder.mkdir()
    return StageCall(
        inputs={name.replace("__", "."): path for name, path in inputs.items()},
        params=params,
        work_dir=folder,
        cache_dir=folder,
        threads=1,
    )


def _sampled(video: Path, folder: Path, *, people_budget: int) -> dict[str, Path]:
    """Inputs of the stage ``pose`` for a video."""
    call = _call(folder / "probe", MediaLimits(), content=video)
    probe = folder / "probe.json"
    probe.write_text(media.probe(call).model_dump_json())
    params = SampleParams(people_budget=people_budget, threads=1)
    document = media.sample(_call(folder / "sample", params, content=video, probe=probe))
    sample = folder / "sample.json"
    sample.write_text(document.model_dump_json())
    names = ("people.zip", "people_pts.npy") if people_budget else ("samples.zip",)
    blobs = {name.replace(".", "__"): folder / "sample" / name for name in names}
    return {"sample": sample, **blobs}


@pytest.fixture(scope="module")
def lifting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lifting") / "lifting.mp4"
    return write_video(path, _frames(FPS * SECONDS, person=True), FPS)


@pytest.mark.slow
def test_somebody_who_lifts_their_arms_is_followed_at_twelve_pictures_a_second(lifting, tmp_path):
    from tasks.compute import actions  # loads torch: only where it is used

    inputs = _sampled(lifting, tmp_path, people_budget=7200)
    call = _call(tmp_path / "pose", PoseParams(), **inputs)
    document = pose.pose(call)
    assert document.degraded == ()
    assert document.coverage.reason is None
    assert document.coverage.covered_s == pytest.approx(SECONDS, abs=0.1)
    (track,) = document.tracks
    assert track.last_row - track.first_row + 1 == 12 * SECONDS
    pts = np.load(call.work_dir / "pose_pts.npy")
    seconds = pts * document.time_base_num / document.time_base_den
    np.testing.assert_allclose(seconds, np.arange(12 * SECONDS) / 12, atol=1e-6)
    joints = np.load(call.work_dir / "joints.npy")
    wrist = joints[:, 16, 0] * SIZE[0]
    assert np.ptp(wrist) > 25  # it swings over 40 pixels

    told = tmp_path / "pose.json"
    told.write_text(document.model_dump_json())
    blobs = {
        name.replace(".", "__"): call.work_dir / name
        for name in ("joints.npy", "world.npy", "pose_pts.npy")
    }
    found = actions.actions(_call(tmp_path / "actions", ActionsParams(), pose=told, **blobs))
    assert {action.granularity for action in found.actions} >= {"macro", "meso"}
    for action in found.actions:
        assert action.person_track == track.track
        assert 0 <= action.span.start_s <= action.span.end_s <= SECONDS + 0.1


def test_without_people_pictures_the_samples_serve_and_it_is_said(lifting, tmp_path):
    inputs = _sampled(lifting, tmp_path, people_budget=0)
    document = pose.pose(_call(tmp_path / "pose", PoseParams(), **inputs))
    assert len(document.tracks) == 1
    assert document.rate_hz == pytest.approx(4.0)
    assert "4 samples a second" in document.degraded[0]


@pytest.mark.parametrize("count", [1, FPS])
def test_a_video_without_people_has_no_poses(count, tmp_path):
    video = write_video(tmp_path / "empty.mp4", _frames(count, person=False), FPS)
    call = _call(tmp_path / "pose", PoseParams(), **_sampled(video, tmp_path, people_budget=60))
    document = pose.pose(call)
    assert document.tracks == ()
    assert document.coverage.reason == "nobody was seen"
    assert np.load(call.work_dir / "joints.npy").shape == (0, 33, 4)


def test_one_frame_with_a_person_is_one_pose(tmp_path):
    video = write_video(tmp_path / "one.mp4", _frames(1, person=True), FPS)
    call = _call(tmp_path / "pose", PoseParams(), **_sampled(video, tmp_path, people_budget=60))
    document = pose.pose(call)
    assert isinstance(document, PoseDocument)
    assert np.load(call.work_dir / "joints.npy").shape == (1, 33, 4)
