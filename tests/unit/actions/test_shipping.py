"""Training what ships, on made sets: folds, threshold, record, manifest."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_skeletons import waving, write_set

from engines.actions import shipping
from engines.actions.classify import ActionClassifier
from engines.actions.confusions import RuleBook, TimingRule
from engines.actions.taxonomy import OTHER, load_taxonomy
from engines.actions.timing import TIMINGS
from engines.actions.union import STILL, make_still, read_union
from engines.actions.weights import from_bytes
from engines.errors import EngineError, UsageError
from engines.runtime.manifest import ModelManifest
from flows.commands.train import train


@pytest.fixture
def sets(tmp_path):
    write_set(tmp_path / "utd_mhad_train.npz", [1, 3, 5, 7], 0, classes=("wave", "squat", "lunge"))
    write_set(tmp_path / "florence3d.npz", [1, 2, 3], 1, classes=("wave", "sit_down", "bow"))
    write_set(tmp_path / "utkinect.npz", [1, 2], 2, classes=("waveHands", "sitDown", "carry"))
    write_set(
        tmp_path / "penn_action_train.npz", [0, 0], 3, classes=("bowl", "squat", "situp"), flat=True
    )
    return tmp_path


def test_the_union_knows_every_clip_and_leaves_out_what_the_taxonomy_does(sets):
    taxonomy = load_taxonomy()
    union = read_union(sets, taxonomy, seed=0)
    again = read_union(sets, taxonomy, seed=0)
    assert np.array_equal(union.normalised.joints, again.normalised.joints)
    assert len(union.clips) == len(union.labels) == len(union.normalised) == len(union.groups)
    assert "utkinect:carry" not in union.sources
    assert union.sources.count("utd:lunge") == 8
    for source, label in zip(union.sources, union.labels, strict=True):
        expected = taxonomy.names.index(OTHER) if source == STILL else taxonomy.class_of(source)
        assert label == expected
    persons, classes = shipping.assign_folds(union)
    for group in set(union.groups):
        assert len({int(f) for f, g in zip(persons, union.groups, strict=True) if g == group}) == 1
    assert set(persons) == set(classes) == {0, 1, 2, 3}


def test_a_missing_file_and_an_unknown_class_are_named(sets):
    taxonomy = load_taxonomy()
    write_set(sets / "utkinect.npz", [1], 2, classes=("waveHands", "sitDown", "levitate"))
    with pytest.raises(EngineError, match="levitate"):
        read_union(sets, taxonomy, seed=0)
    (sets / "utkinect.npz").unlink()
    with pytest.raises(UsageError, match=r"utkinect\.npz"):
        read_union(sets, taxonomy, seed=0)


def test_who_stands_still_hardly_moves():
    clip = waving(60)
    still = make_still(clip, np.random.default_rng(0))
    assert still.duration_s == pytest.approx(2.0)
    assert np.abs(still.joints - still.joints[0]).max() < 0.2
    assert np.abs(clip.joints - clip.joints[0]).max() > 0.3


def test_the_threshold_weighs_lost_against_invented():
    labels = np.array([0, 0, 1, 1, 2, 2])
    held = np.zeros((6, 3), np.float32)
    held[:2, 0], held[2:4, 1] = 0.7, 0.65
    held[:4, 2] = 0.2
    unseen = np.zeros_like(held)
    unseen[4:, 0] = 0.5
    threshold, curve = shipping.choose_threshold(held, unseen, labels, labels < 2)
    assert 0.5 < threshold <= 0.65
    assert {row["known_right"] for row in curve} == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("gain", [1, -1])
def test_rules_ship_only_where_they_gain_on_clips_they_were_not_learned_from(monkeypatch, gain):
    taxonomy = load_taxonomy()
    first, second = (taxonomy.names.index(name) for name in ("wave", "knock"))
    labels = np.array([first, second] * 20)
    held = np.zeros((40, len(taxonomy.names)), np.float32)
    held[:, first], held[:, second] = 0.5, 0.45
    rule = TimingRule(
        below="wave", above="knock", timing="strokes_per_s", threshold=1.0, margin=0.2, gain=2
    )
    measured = np.zeros((40, len(TIMINGS)))
    measured[:, list(TIMINGS).index("strokes_per_s")] = 2.0 * (labels == second) * gain
    monkeypatch.setattr(shipping, "learn_rules", lambda *_: [rule])
    book = shipping.rule_book("made", labels, taxonomy, held, np.arange(40) % 4, measured)
    assert book.accuracy_before == 0.5
    assert (book.accuracy_after > 0.5) == (gain > 0) == (book.rules == (rule,))
    assert len(book.prompts) == len(book.rules)


@pytest.mark.slow
def test_the_command_writes_what_the_classifier_opens(sets, monkeypatch):
    quick = replace(shipping.SETTINGS, epochs=1)
    monkeypatch.setattr(shipping, "SETTINGS", quick)
    out = sets / "out"
    train("actions", sets, out, seed=0)
    stored = from_bytes((out / "actions-17.npz").read_bytes())
    scores = ActionClassifier(stored).scores([waving(50)])
    assert scores.shape == (1, 18)
    record = json.loads((out / "actions-17-record.json").read_bytes())
    assert record["seed"] == 0
    assert len(record["data_sha256"]) == 4
    assert np.array(record["confusion_matrix"]).sum() == record["clips"]
    RuleBook.model_validate_json((out / "actions-17-rules.json").read_bytes())
    manifest = ModelManifest.model_validate_json((out / "actions-17.json").read_bytes())
    assert {f.size_bytes for f in manifest.files} == {
        (out / name).stat().st_size for name in ("actions-17.npz", "actions-17-rules.json")
    }
    with pytest.raises(UsageError, match="actions"):
        train("nothing", sets, out, seed=0)
