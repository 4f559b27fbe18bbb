"""The network learns, the same seed gives the same weights, and stored weights come back."""

import numpy as np
import pytest
import torch
from made_skeletons import clip, squatting, standing, waving

from engines.actions.augment import Augmentation, Augmenter
from engines.actions.classify import ActionClassifier
from engines.actions.covariance import describe, fit_kernel_machine, join, seen_aside
from engines.actions.network import NetworkShape, SpaceTimeAttention, Streams, parent_rows
from engines.actions.normalise import NormalisedClips, disturb, even_effort, normalise_clips
from engines.actions.skeleton import JOINTS
from engines.actions.training import TrainingSettings, train_network, with_mirrored
from engines.actions.weights import StoredModel, from_bytes, to_bytes
from engines.errors import EngineError, NotFiniteError, UsageError

QUICK = TrainingSettings(dimensions=2, epochs=12, batch_size=8)
NAMES = ("wave", "squat", "other")


@pytest.fixture(scope="module")
def few():
    """Eight clips of each of three movements, all a little different."""
    rng = np.random.default_rng(0)
    clips = []
    for _ in range(8):
        clips += [
            waving(int(rng.integers(50, 80)), hz=rng.uniform(1.5, 2.5)),
            squatting(int(rng.integers(50, 80)), depth=rng.uniform(0.5, 0.8)),
            clip(standing(60)),
        ]
    labels = np.tile(np.arange(3), 8)
    return disturb(normalise_clips(clips, JOINTS, view="flat"), 0.02, 0.0, seed=1), labels


@pytest.fixture(scope="module")
def trained(few):
    clips, labels = few
    return train_network(clips, labels, 3, JOINTS, QUICK, has_depth=False, seed=3)


def test_it_learns_what_is_easy(few, trained):
    clips, labels = few
    again = disturb(clips, 0.03, 0.0, seed=9)
    probabilities = trained.probabilities(again)
    assert probabilities.shape == (24, 3)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(24), abs=1e-5)
    assert (probabilities.argmax(axis=1) == labels).mean() > 0.9


def test_the_same_seed_gives_the_same_weights_and_another_does_not(few):
    clips, labels = few
    short = TrainingSettings(dimensions=2, epochs=1, batch_size=8)
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    a, b, c = (
        train_network(clips, labels, 3, JOINTS, short, has_depth=False, seed=s).logits(clips)
        for s in (1, 1, 2)
    )
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_depth_is_refused_where_there_is_none(few):
    clips, labels = few
    with pytest.raises(UsageError, match="no depth"):
        train_network(clips, labels, 3, JOINTS, TrainingSettings(), has_depth=False, seed=0)
    with pytest.raises(UsageError, match="no clip"):
        train_network(clips.select(labels < 0), labels, 3, JOINTS, QUICK, has_depth=True, seed=0)


def test_attention_reads_every_joint_and_moment():
    shape = NetworkShape(joints=14, dimensions=2, classes=4)
    network = SpaceTimeAttention(shape).eval()
    read = torch.randn(2, 32, 14, 7, requires_grad=True)
    network(read)[:, 0].sum().backward()
    assert (read.grad.abs().sum(dim=(0, 3)) > 0).all()


def test_streams_are_joints_bones_and_velocities():
    joints = torch.randn(1, 32, 14, 3)
    mask = torch.ones(1, 14)
    mask[0, 3] = 0
    read = Streams(JOINTS, 2)(joints, mask)
    wrist, elbow = JOINTS.index("left_wrist"), JOINTS.index("left_elbow")
    assert elbow == 3
    assert torch.equal(read[..., wrist, :2], joints[..., wrist, :2])
    bone = joints[..., wrist, :2] - joints[..., elbow, :2]
    assert torch.allclose(read[..., wrist, 2:4], bone)
    step = joints[0, 5, wrist, :2] - joints[0, 4, wrist, :2]
    assert torch.allclose(read[0, 5, wrist, 4:6], 4.0 * step)
    assert not read[..., elbow, :].any()
    assert parent_rows(JOINTS)[wrist].tolist() == [elbow, elbow]


def test_augmentation_off_changes_nothing_and_on_is_seeded():
    joints, mask = torch.randn(4, 64, 14, 3), torch.ones(4, 14)
    nothing = Augmentation(
        turn_degrees=0, tilt_degrees=0, crop=0, warp=0, scale=0, shape=0, offset=0, noise=0,
        joint_dropout=0,
    )  # fmt: skip
    same, kept = Augmenter(nothing, has_depth=True, seed=0)(joints, mask, 64)
    assert torch.allclose(same, joints, atol=1e-3)
    assert torch.equal(kept, mask)
    a, b = (Augmenter(Augmentation(), has_depth=True, seed=5)(joints, mask, 32) for _ in range(2))
    assert torch.equal(a[0], b[0])
    assert a[0].shape == (4, 32, 14, 3)


def test_mirrored_clips_get_their_counterpart_label(few):
    clips, labels = few
    both, said = with_mirrored(clips, labels, JOINTS, np.array([1, 0, 2]))
    assert len(both) == 48
    assert said[24:].tolist() == [(1, 0, 2)[label] for label in labels]


def test_weights_come_back_and_strangers_are_refused(few, trained):
    clips, _ = few
    data = to_bytes(StoredModel(trained, NAMES, 0.5))
    assert data == to_bytes(StoredModel(trained, NAMES, 0.5))
    back = from_bytes(data)
    assert back.classes == NAMES
    assert np.abs(back.trained.logits(clips) - trained.logits(clips)).max() < 0.05
    with pytest.raises(EngineError, match="no action weights"):
        from_bytes(b"PK nonsense")
    with pytest.raises(EngineError, match="no action weights"):
        from_bytes(data[: len(data) // 2])


def test_the_classifier_says_nothing_where_it_is_not_sure(trained):
    classifier = ActionClassifier(StoredModel(trained, NAMES, 0.6))
    assert classifier.scores([]).shape == (0, 3)
    scores = classifier.scores([waving(40), waving(90, rate_hz=45.0)])
    assert [classifier.decide(row) for row in scores] == ["wave", "wave"]
    assert classifier.decide(np.array([0.5, 0.3, 0.2], np.float32)) is None
    assert classifier.decide(np.array([0.1, 0.1, 0.8], np.float32)) is None


def test_values_that_are_not_finite_never_pass(few):
    clips, labels = few
    network = train_network(
        clips, labels, 3, JOINTS, TrainingSettings(dimensions=2, epochs=1), has_depth=False, seed=0
    )
    with torch.no_grad():
        network.network.head.bias[0] = float("nan")
    with pytest.raises(NotFiniteError):
        network.probabilities(clips)


def test_the_kernel_machine_learns_and_its_views_keep_labels(few):
    clips, labels = few
    copies = (clips, *seen_aside(clips))
    features = join(*(describe(some, 2) for some in copies))
    machine = fit_kernel_machine(features, np.tile(labels, len(copies)), 3)
    again = describe(disturb(clips, 0.02, 0.0, seed=5), 2)
    assert (machine.probabilities(again).argmax(axis=1) == labels).mean() > 0.9


def test_who_waits_and_who_hurries_look_alike_at_an_even_effort():
    pose = standing(64)
    wrist = JOINTS.index("right_wrist")
    even, late = np.linspace(0.0, 1.0, 64), np.linspace(0.0, 1.0, 64)
    late = np.clip((late - 0.6) / 0.3, 0.0, 1.0)
    paths = np.stack([pose, pose]).astype(np.float32)
    paths[0, :, wrist, 1] -= even
    paths[1, :, wrist, 1] -= late
    mask = np.ones((2, 13), np.float32)
    told = even_effort(NormalisedClips(paths, mask), 3).joints
    assert told.shape == paths.shape
    apart = np.abs(told[0, :, wrist, 1] - told[1, :, wrist, 1]).max()
    assert apart < 0.15 < np.abs(even - late).max()
    still = NormalisedClips(np.zeros((1, 64, 13, 3), np.float32), mask[:1])
    assert not even_effort(still, 2).joints.any()
