"""The turned square round a person, and the way between it and the picture."""

import numpy as np
import pytest

from engines.actions.pose.detector import anchors
from engines.actions.pose.geometry import (
    MARGIN,
    BodySquare,
    bounds,
    cells,
    is_other,
    overlap,
    turn,
)


@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 2, -2.5, 3.1])
def test_the_square_stands_along_the_body(angle):
    hips = np.array([120.0, 80.0], np.float32)
    along = 40 * np.array([np.sin(angle), -np.cos(angle)], np.float32)
    square = BodySquare.from_points(hips, hips + along)
    assert square.angle == pytest.approx(angle, abs=1e-5)
    assert square.size == pytest.approx(2 * 40 * MARGIN, rel=1e-5)
    middle, top = square.to_picture(np.array([[0.5, 0.5], [0.5, 0.5 - 0.5 / MARGIN]], np.float32))
    np.testing.assert_allclose(middle, hips, atol=1e-3)
    np.testing.assert_allclose(top, hips + along, atol=1e-3)


def test_a_mark_is_found_in_the_crop_where_it_is_in_the_picture():
    picture = np.zeros((300, 400, 3), np.uint8)
    picture[100:104, 220:224] = 255
    square = BodySquare(x=200.0, y=120.0, size=128.0, angle=0.7)
    crop = square.crop(picture, 256)
    rows, columns = np.nonzero(crop[..., 0] > 100)
    inside = np.array([columns.mean() + 0.5, rows.mean() + 0.5], np.float32) / 256
    np.testing.assert_allclose(square.to_picture(inside), [222.0, 102.0], atol=0.3)


def test_an_upright_square_of_the_crops_size_is_cut_out_exactly():
    picture = np.random.default_rng(3).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    crop = BodySquare(x=150.0, y=140.0, size=64.0, angle=0.0).crop(picture, 64)
    np.testing.assert_array_equal(crop, picture[108:172, 118:182])


def test_edges_are_continued_outside_of_the_picture():
    picture = np.full((50, 50, 3), 90, np.uint8)
    assert (BodySquare(x=0.0, y=0.0, size=200.0, angle=1.0).crop(picture, 32) == 90).all()


def test_turning_is_clockwise_with_y_down_and_leaves_depth():
    up = np.array([[0.0, -1.0, 5.0]], np.float32)
    np.testing.assert_allclose(turn(up, np.pi / 2), [[1.0, 0.0, 5.0]], atol=1e-6)


def test_overlap_of_boxes():
    first = np.array([[0, 0, 10, 10], [5, 5, 5, 5]], np.float32)
    second = np.array([[5, 0, 15, 10], [20, 20, 30, 30], [0, 0, 10, 10]], np.float32)
    np.testing.assert_allclose(overlap(first, second), [[1 / 3, 0, 1], [0, 0, 0]], atol=1e-6)
    assert bounds(np.array([[1, 9], [4, 2]], np.float32)).tolist() == [1, 2, 4, 9]


def test_anchors_stand_in_the_middle_of_their_cells():
    places = anchors()
    assert places.shape == (2254, 2)
    np.testing.assert_allclose(places[:4], [[0.5 / 28] * 2] * 2 + [[1.5 / 28, 0.5 / 28]] * 2)
    np.testing.assert_allclose(places[-6:], [[6.5 / 7] * 2] * 6)


def test_grids_are_the_same_up_to_noise_and_never_where_they_show_nothing():
    picture = np.full((60, 96, 3), 100, np.uint8)
    noisy = np.clip(picture + np.random.default_rng(0).normal(0, 3, picture.shape), 0, 255)
    before, now = cells(picture, (24, 15)), cells(noisy.astype(np.uint8), (24, 15))
    assert not is_other(before, now)
    picture[8:12, 8:12] += 40
    assert is_other(before, cells(picture, (24, 15)))
    assert is_other(before[:0], now[:0])
    assert is_other(before, cells(picture, (12, 15)))
