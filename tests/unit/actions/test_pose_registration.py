"""Two made views of one scene, whose map is known, brought together."""

import numpy as np
import pytest
from made_people import STANDING

from engines.actions.drawing import Place, draw_person
from engines.actions.registration import Registration, people_mask, register
from engines.errors import EngineError
from flows.bench.actions_views import turned_camera, two_views

SIZE = (384, 216)


def _error(found: Registration, matrix: np.ndarray) -> float:
    """Mean distance in pixels over the points of the second view that the first shows too."""
    grid = np.stack(np.meshgrid(np.arange(0, SIZE[0], 8), np.arange(0, SIZE[1], 8)), -1)
    points = grid.reshape(-1, 2).astype(float)
    extended = np.column_stack([points, np.ones(len(points))]) @ np.linalg.inv(matrix).T
    truth = extended[:, :2] / extended[:, 2:]
    shared = ((truth >= 0) & (truth < SIZE)).all(axis=1)
    return float(np.linalg.norm(found.to_first(points) - truth, axis=1)[shared].mean())


@pytest.mark.parametrize("yaw", [5, 20, 30])
def test_a_turned_camera_is_undone(yaw):
    matrix = turned_camera(SIZE, yaw, 2, 1.08)
    found = register(*two_views(SIZE, yaw, matrix))
    assert found is not None
    assert _error(found, matrix) < 0.6  # seen 0.1 to 0.4; without the map 36 to 220
    assert found.agreement > 0.5
    assert found.residual_px < 1.0


def test_people_who_moved_do_not_pull_the_map_when_they_are_masked():
    matrix = turned_camera(SIZE, 20, 3, 1.1)
    views = two_views(SIZE, 1, matrix)
    masks = []
    for view, x in zip(views, (190, 202), strict=True):
        joints = draw_person(view, STANDING, Place(x, 112, 190))
        seen = np.column_stack([joints, np.ones(len(joints))])
        masks.append(people_mask(view.shape[:2], seen[None]))
    found = register(*views, first_people=masks[0], second_people=masks[1])
    assert found is not None
    assert _error(found, matrix) < 1.0
    bare = register(*views)
    assert bare is None or bare.agreement < found.agreement


def test_a_mask_covers_the_whole_person():
    picture = np.zeros((216, 384, 3), np.uint8)
    joints = draw_person(picture, STANDING, Place(190, 110, 170))
    mask = people_mask((216, 384), np.column_stack([joints, np.ones(13)])[None])
    drawn = picture.any(axis=2)
    assert (drawn & ~mask).sum() < 0.01 * drawn.sum()
    assert mask.sum() < 4 * drawn.sum()


def test_invisible_joints_mask_nothing():
    joints = np.concatenate([np.full((1, 13, 2), 50.0), np.zeros((1, 13, 1))], axis=2)
    assert not people_mask((100, 100), joints).any()


def test_views_of_different_scenes_are_told_apart():
    first, _ = two_views(SIZE, 1, np.eye(3))
    second, _ = two_views(SIZE, 2, np.eye(3))
    assert register(first, second) is None


def test_pictures_without_anything_on_them_give_no_map():
    black = np.zeros((216, 384, 3), np.uint8)
    assert register(black, black[:100]) is None


def test_a_map_holds_for_pictures_of_any_size():
    matrix = turned_camera((512, 288), 10, 1, 1.0)
    found = register(*two_views((512, 288), 3, matrix))
    assert found is not None
    corner = np.array([[330.0, 130.0]])
    extended = np.append(corner, 1.0) @ np.linalg.inv(matrix).T
    np.testing.assert_allclose(found.to_first(corner)[0], extended[:2] / extended[2], atol=1.0)


def test_a_mask_of_another_size_is_refused():
    first, second = two_views(SIZE, 1, np.eye(3))
    with pytest.raises(EngineError, match="mask"):
        register(first, second, first_people=np.zeros((5, 5), bool))
