"""People found and followed: drawn figures whose joints are known, and pictures without anybody."""

import cv2
import numpy as np
import pytest
from made_people import BASE, STANDING, STEP, follow, raised_arm

from engines.actions.drawing import Place, draw_people, draw_person, room
from engines.actions.pose import detector, landmarks
from engines.actions.pose.detector import tiles
from engines.actions.pose.find import LookedAt, PoseRows, find_people
from engines.actions.skeleton import BLAZEPOSE_ROWS
from engines.contracts.actions import PoseDocument, PoseParams
from engines.runtime.batching import BatchRunner

MAIN = list(BLAZEPOSE_ROWS)
SWAPPED = [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11]
"""Rows of MAIN with left and right exchanged."""


def pixels(document: PoseDocument, rows: PoseRows) -> np.ndarray:
    """float [n, 13, 2]: main joints in pixels."""
    return rows.joints[:, MAIN, :2] * [document.width, document.height]


@pytest.mark.parametrize(
    ("size", "joints", "place"),
    [
        ((384, 216), STANDING, Place(190, 110, 180)),
        ((384, 216), raised_arm(0.4), Place(120, 115, 140)),
        ((216, 384), raised_arm(-0.4), Place(110, 200, 300)),
        ((384, 384), STANDING, Place(190, 190, 250, 0.6)),
        ((384, 384), raised_arm(0.2), Place(190, 190, 250, -1.5)),
        ((384, 216), STANDING, Place(300, 120, 90)),
    ],
    ids=["standing", "waving", "portrait", "leaning", "lying", "small"],
)
def test_landmarks_are_where_the_joints_are(size, joints, place):
    picture, truth = draw_people(size, (joints, place))
    document, rows = follow([picture])
    assert len(document.tracks) == 1
    error = np.linalg.norm(pixels(document, rows)[0] - truth[0], axis=1) / place.height
    # Seen: mean 0.014 to 0.024, largest 0.055; a mixed-up side alone would be 0.2.
    assert error.mean() < 0.035
    assert error.max() < 0.09
    assert rows.joints[0, MAIN, 3].min() > 0.5


def test_a_mirrored_picture_gives_mirrored_landmarks():
    picture, _ = draw_people((384, 216), (raised_arm(0.3), Place(150, 112, 160)))
    document, rows = follow([picture])
    _, mirrored = follow([np.ascontiguousarray(picture[:, ::-1])])
    back = mirrored.joints[0][MAIN][SWAPPED][:, :2] * [-1, 1] + [1, 0]
    apart = np.linalg.norm((back - rows.joints[0, MAIN, :2]) * [384, 216], axis=1)
    assert apart.mean() < 0.03 * 160
    world = mirrored.world[0][MAIN][SWAPPED][:, 0] * -1
    assert np.abs(world - rows.world[0][MAIN][:, 0]).max() < 0.1
    assert document.tracks[0].score > 0.9


def test_fractions_do_not_depend_on_the_size_of_the_picture():
    picture, _ = draw_people((384, 216), (STANDING, Place(200, 110, 170)))
    _, rows = follow([picture])
    _, larger = follow([cv2.resize(picture, (768, 432), interpolation=cv2.INTER_CUBIC)])
    np.testing.assert_allclose(larger.joints[0, MAIN, :2], rows.joints[0, MAIN, :2], atol=0.02)


def test_world_axes_follow_the_picture_however_the_body_lies():
    picture, _ = draw_people((384, 384), (STANDING, Place(190, 190, 250, -1.5)))
    _, rows = follow([picture])
    nose, ankle = rows.world[0, 0], rows.world[0, 27]
    assert nose[0] < -0.4  # lying with the head to the left
    assert ankle[0] > 0.5
    assert abs(nose[1]) < 0.3


def test_a_wave_is_followed_by_one_track_with_little_lag():
    angles = 0.7 * np.sin(2 * np.pi * 1.0 * np.arange(20) / 12)
    made = [draw_people((384, 216), (raised_arm(a), Place(190, 118, 150))) for a in angles]
    document, rows = follow(picture for picture, _ in made)
    assert [t.last_row - t.first_row + 1 for t in document.tracks] == [20]
    wrist = pixels(document, rows)[:, MAIN.index(16), 0]
    truth = np.array([joints[0, MAIN.index(16), 0] for _, joints in made])
    assert np.corrcoef(wrist, truth)[0, 1] > 0.95
    assert np.ptp(wrist) > 0.7 * np.ptp(truth)
    assert rows.pts.tolist() == [i * STEP for i in range(20)]


@pytest.fixture
def shown_to(monkeypatch):
    """How many squares and views the two real networks were shown."""
    shown = {"landmarks": 0, "detector": 0}
    for name, owner in (("landmarks", landmarks), ("detector", detector)):

        class Counting(BatchRunner):
            name_ = name

            def run(self, inputs):
                shown[self.name_] += len(inputs["picture"])
                return super().run(inputs)

        monkeypatch.setattr(owner, "BatchRunner", Counting)
    return shown


def test_who_stands_still_is_not_looked_at_again_and_again(shown_to):
    picture, truth = draw_people((384, 216), (STANDING, Place(190, 110, 170)))
    rng = np.random.default_rng(0)
    noisy = (
        np.clip(picture + rng.normal(0, 2, picture.shape), 0, 255).astype(np.uint8)
        for _ in range(24)
    )
    document, rows = follow(noisy)
    assert [t.last_row - t.first_row + 1 for t in document.tracks] == [24]
    assert shown_to["landmarks"] < 6
    assert shown_to["detector"] <= len(tiles(384, 216)) + 1
    error = np.linalg.norm(pixels(document, rows) - truth[0], axis=2) / 170
    assert error.mean(axis=1).max() < 0.035


def test_a_slow_movement_is_not_taken_for_rest(shown_to):
    angles = np.linspace(-0.5, 0.5, 48)
    made = [draw_people((384, 216), (raised_arm(a), Place(190, 118, 150))) for a in angles]
    document, rows = follow(picture for picture, _ in made)
    assert [t.last_row - t.first_row + 1 for t in document.tracks] == [48]
    wrist = pixels(document, rows)[:, MAIN.index(16)]
    truth = np.array([joints[0, MAIN.index(16)] for _, joints in made])
    assert np.linalg.norm(wrist - truth, axis=1).max() < 0.09 * 150
    assert shown_to["landmarks"] > 12


def test_smoothing_takes_jitter_and_leaves_the_place():
    rng = np.random.default_rng(5)
    still, truth = draw_people((384, 216), (STANDING, Place(190, 110, 170)))
    noisy = [
        np.clip(still + rng.normal(0, 12, still.shape), 0, 255).astype(np.uint8) for _ in range(9)
    ]
    document, raw = follow(noisy, smoothing=False)
    _, smooth = follow(noisy)
    jitter = [np.abs(np.diff(r.joints[:, MAIN, :2], axis=0)).mean() for r in (raw, smooth)]
    assert jitter[1] < 0.7 * jitter[0]
    error = np.linalg.norm(pixels(document, smooth)[-1] - truth[0], axis=1)
    assert error.mean() < 0.04 * 170


def test_two_people_have_two_tracks_that_keep_their_names():
    made = [
        draw_people(
            (384, 216),
            (STANDING, Place(100 + 3 * i, 112, 150)),
            (raised_arm(0.2), Place(290 - 3 * i, 115, 145)),
        )
        for i in range(9)
    ]
    document, rows = follow(picture for picture, _ in made)
    assert [t.track for t in document.tracks] == ["person-1", "person-2"]
    places = []
    for track in document.tracks:
        assert track.last_row - track.first_row + 1 == 9
        part = rows.joints[track.first_row : track.last_row + 1, 0, 0] * 384
        places.append(np.diff(part).mean())
    assert sorted(np.round(places)) == [-3, 3]


def test_a_short_gap_is_a_jump_in_time_and_a_long_one_somebody_new():
    there, _ = draw_people((384, 216), (STANDING, Place(190, 110, 170)))
    empty = room(384, 216)
    document, rows = follow([there] * 6 + [empty] * 4 + [there] * 6)
    assert len(document.tracks) == 1
    assert 5 * STEP <= np.diff(rows.pts).max() <= 7 * STEP
    document, _ = follow([there] * 6 + [empty] * 12 + [there] * 6)
    assert [t.track for t in document.tracks] == ["person-1", "person-2"]


def test_a_cut_ends_a_track_even_where_another_person_stands_at_the_same_place():
    first, _ = draw_people((384, 216), (STANDING, Place(190, 110, 170)))
    second = 255 - room(384, 216)
    place = Place(195, 112, 165)
    draw_person(second, STANDING, place)
    document, _ = follow([first] * 6 + [second] * 6)
    assert [t.last_row - t.first_row + 1 for t in document.tracks] == [6, 6]


@pytest.mark.parametrize(
    ("picture", "reason"),
    [
        (np.zeros((216, 384, 3), np.uint8), "nobody was seen"),
        (room(384, 216), "nobody was seen"),
        (np.random.default_rng(0).integers(0, 256, (216, 384, 3), dtype=np.uint8), "nobody"),
        (np.zeros((1, 1, 3), np.uint8), "1x1 are too small"),
        (np.zeros((2, 384, 3), np.uint8), "384x2 are too small"),
    ],
    ids=["black", "empty room", "noise", "one pixel", "a strip"],
)
def test_nobody_is_an_empty_document_that_says_so(picture, reason):
    document, rows = follow([picture] * 8)
    assert document.tracks == ()
    assert reason in document.coverage.reason
    assert rows.joints.shape == (0, 33, 4)
    assert rows.world.shape == (0, 33, 3)
    assert rows.pts.shape == (0,)


def test_too_small_pictures_cover_nothing():
    document, _ = follow([np.zeros((1, 1, 3), np.uint8)] * 12)
    assert (document.coverage.covered_s, document.coverage.skipped_s) == (0.0, 1.0)


def test_no_picture_at_all():
    document, _ = follow([])
    assert document.coverage.reason == "there was no picture to look at"


def test_a_glimpse_is_not_a_track():
    there, _ = draw_people((384, 216), (STANDING, Place(190, 110, 170)))
    document, _ = follow([there] * 2 + [room(384, 216)] * 12)
    assert document.tracks == ()
    assert document.coverage.reason.startswith("sightings: 1, none long")


@pytest.mark.parametrize("most", [3, 8])
def test_of_fifty_people_the_largest_are_followed_and_it_is_said(most):
    people = [
        (STANDING, Place(38.4 * (column + 0.5), 68 * (row + 0.5), 90 + 6 * row))
        for row in range(5)
        for column in range(10)
    ]
    assert len(people) == 50
    picture, _ = draw_people((384, 340), *people)
    document, rows = follow([picture] * 5, max_people=most)
    assert len(document.tracks) == most
    assert np.unique(rows.pts, return_counts=True)[1].max() <= most
    (told,) = document.degraded
    assert f"people or more in one picture: only the {most} largest were looked at" in told
    assert told in document.coverage.reason


def test_what_was_not_looked_at_is_said():
    looked_at = LookedAt(time_base=BASE, rate_hz=12.0, covered_s=5.0, skipped_s=2.5)
    document, _ = find_people([(0, room(384, 216))], looked_at, PoseParams(threads=1))
    assert "2.5 s of little motion were not looked at" in document.coverage.reason
    assert document.coverage.skipped_s == 2.5
