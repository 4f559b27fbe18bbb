"""Labels become spans; black pictures show nothing; vectors have unit length."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from made_media import write_video

from engines.contracts.media import Keyframe, Sample, SampleParams, ShotsDocument
from engines.contracts.time import TimeSpan
from engines.contracts.vision import EmbedParams
from engines.errors import ModelMissingError
from engines.media.probe import probe
from engines.media.sample import decode
from engines.vision.describe import describe_embed
from engines.vision.embed import embed, is_flat
from engines.vision.label_engine import Picture, Seen
from tasks.compute.call import StageCall
from tasks.compute.vision import embed as embed_stage

STEP = 512
"""Ticks between samples; the time base is 1/1024 s, so two samples a second."""


def sample(index: int) -> Sample:
    return Sample(
        name=f"{index:06d}.jpg",
        frame=index * 12,
        pts=index * STEP,
        end_pts=index * STEP + 41,
        motion=0,
        sharpness=0,
    )


class Scripted:
    """Says of each picture what its first pixel asks for: the class and its probability."""

    name = "scripted"
    vocabulary = "two"
    classes = ("cat", "dog")
    dimension = 4

    def __init__(self) -> None:
        self.batches: list[int] = []

    def see(self, pictures: Sequence[Picture]) -> Seen:
        self.batches.append(len(pictures))
        scores = np.array([p[0, 0, :2] for p in pictures], np.float32) / 100
        features = np.array([[3.0, 4.0, 0.0, p[0, 0, 0]] for p in pictures], np.float32)
        return Seen(scores, features)


def picture(cat: int, dog: int = 0) -> Picture:
    made = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    made[0, 0] = (cat, dog, 0)
    return made


def run(cats: Sequence[int], dogs: Sequence[int] | None = None, **params: object):
    dogs = dogs or [0] * len(cats)
    stream = ((sample(i), picture(c, d)) for i, (c, d) in enumerate(zip(cats, dogs, strict=True)))
    return embed(
        stream, 1, 1024, EmbedParams(**params), Path("unused"), engine=Scripted(), end_pts=10_000
    )


def spans(document) -> list[tuple[str, int, int, float]]:
    return [(x.label, x.span.start_pts, x.span.end_pts, round(x.score, 2)) for x in document.labels]


def test_a_label_in_consecutive_samples_is_one_fact_from_middle_to_middle() -> None:
    document, _ = run([0, 50, 70, 30, 0])
    assert spans(document) == [("cat", 256, 3 * 512 + 256, 0.7)]


def test_at_the_ends_a_label_goes_to_the_end() -> None:
    document, _ = run([50, 50, 50])
    assert spans(document) == [("cat", 0, 10_000, 0.5)]


def test_one_sample_without_it_does_not_end_a_label_and_two_do() -> None:
    assert len(run([50, 50, 0, 50, 50])[0].labels) == 1
    assert len(run([50, 50, 0, 0, 50, 50])[0].labels) == 2


def test_noise_is_dropped() -> None:
    assert spans(run([30, 35, 39, 30])[0]) == []
    assert spans(run([0, 55, 0, 0])[0]) == []
    assert len(run([0, 65, 0, 0])[0].labels) == 1


def test_labels_may_overlap() -> None:
    document, _ = run([50, 50, 50], [0, 60, 60])
    assert [x.label for x in document.labels] == ["cat", "dog"]
    assert document.labels[0].span.overlaps(document.labels[1].span)


def test_flat_pictures_have_no_label_but_a_vector() -> None:
    black = np.full((60, 80, 3), 16, np.uint8)
    black[0, 0] = (99, 0, 0)
    document, vectors = embed(
        ((sample(i), black) for i in range(5)),
        1,
        1024,
        EmbedParams(),
        Path("unused"),
        engine=Scripted(),
    )
    assert document.labels == ()
    assert vectors.shape == (5, 4)
    assert is_flat(black)
    assert not is_flat(picture(0))


def test_one_picture_has_one_vector_and_a_label_to_the_end() -> None:
    document, vectors = run([65])
    assert spans(document) == [("cat", 0, 10_000, 0.65)]
    assert vectors.shape == (1, 4)


class Coloured(Scripted):
    """A vector for the colour of the second pixel."""

    def see(self, pictures: Sequence[Picture]) -> Seen:
        seen = super().see(pictures)
        features = np.array([np.eye(4)[p[0, 1, 0] % 4] for p in pictures], np.float32)
        return Seen(seen.probabilities, features)


def compressed(keyframes: set[str] | None, **params: object):
    """Forty samples in twenty seconds: red, but for three that are green."""
    pictures = [picture(50) for _ in range(40)]
    for i, made in enumerate(pictures):
        made[0, 1, 0] = 20 <= i < 23
    stream = ((sample(i), p) for i, p in enumerate(pictures))
    return embed(
        stream,
        1,
        1024,
        EmbedParams(**params),
        Path("unused"),
        keyframes=keyframes,
        engine=Coloured(),
        end_pts=40 * STEP,
    )


def test_a_budget_of_vectors_keeps_what_differs_and_every_keyframe() -> None:
    keyframes = {"000005.jpg", "000031.jpg", "000032.jpg"}
    document, vectors = compressed(keyframes, vectors_per_s=0.25)
    names = [e.sample_name for e in document.embedded]
    assert len(names) == len(vectors) == 5
    assert keyframes < set(names)
    assert any("000020.jpg" <= name <= "000022.jpg" for name in names)
    assert names == sorted(names)
    assert document.vectors_left_out == 35
    assert document.degraded == ()
    assert spans(document) == [("cat", 0, 40 * STEP, 0.5)]


def test_keyframes_stay_however_small_the_budget() -> None:
    keyframes = {f"{i:06d}.jpg" for i in range(0, 40, 4)}
    document, _ = compressed(keyframes, vectors_per_s=0.05)
    assert {e.sample_name for e in document.embedded} == keyframes


def test_without_a_budget_all_stay_and_without_keyframes_it_is_said() -> None:
    assert compressed(None)[0].vectors_left_out == 0
    document, vectors = compressed(None, vectors_per_s=0.1)
    assert len(vectors) == 2
    assert "keyframes" in document.degraded[0]


def test_vectors_have_unit_length_and_rows_in_order() -> None:
    document, vectors = run([0, 50, 90])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert [e.sample_name for e in document.embedded] == [f"{i:06d}.jpg" for i in range(3)]
    assert document.dimension == vectors.shape[1]
    assert vectors[0, 3] < vectors[1, 3] < vectors[2, 3]


def test_pictures_are_taken_one_batch_at_a_time() -> None:
    engine = Scripted()
    taken = 0

    def stream() -> Iterator[tuple[Sample, Picture]]:
        nonlocal taken
        for i in range(100):
            taken += 1
            assert taken - sum(engine.batches) <= 9
            yield sample(i), picture(50)

    document, vectors = embed(
        stream(), 1, 1024, EmbedParams(batch_size=8), Path("unused"), engine=engine
    )
    assert len(document.embedded) == len(vectors) == 100
    assert max(engine.batches) == 8


def test_no_pictures_is_said() -> None:
    document, vectors = embed(iter(()), 1, 1024, EmbedParams(), Path("unused"))
    assert document.embedded == ()
    assert len(vectors) == 0
    assert document.coverage.reason


def test_description_changes_with_every_ingredient_and_loads_nothing(tmp_path: Path) -> None:
    base = describe_embed(EmbedParams(threads=1))
    assert base.model == "efficientnet-lite0"
    assert base == describe_embed(EmbedParams(threads=1))
    assert base != describe_embed(EmbedParams(threads=1, backend="torch"))
    assert base != describe_embed(EmbedParams(threads=1, precision="int8"))
    (tmp_path / "config.json").write_text("{}")
    one = describe_embed(EmbedParams(model=str(tmp_path)))
    (tmp_path / "preprocessor_config.json").write_text("{}")
    two = describe_embed(EmbedParams(model=str(tmp_path)))
    assert one.model_revision != two.model_revision
    with pytest.raises(ModelMissingError):
        describe_embed(EmbedParams(model=str(tmp_path / "nowhere")))


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


def test_real_model_gives_the_same_vector_whatever_the_batch(networks: Path) -> None:
    pictures = [picture(i) for i in range(5)]
    vectors = [
        embed(
            ((sample(i), p) for i, p in enumerate(pictures)),
            1,
            1024,
            EmbedParams(backend="openvino", batch_size=size),
            networks,
        )[1]
        for size in (1, 4)
    ]
    assert (vectors[0] * vectors[1]).sum(axis=1).min() >= 0.9999


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "label"), [("act_archery.avi", "bow"), ("scene_toddler_reads.mp4", "diaper")]
)
def test_what_real_clips_show(corpus_dir: Path, networks: Path, name: str, label: str) -> None:
    import av

    pictures = []
    with av.open(str(corpus_dir / "real" / name), metadata_errors="ignore") as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index % 50 == 0:
                pictures.append(frame.to_ndarray(format="rgb24"))
            if len(pictures) == 10:
                break
    document, _ = embed(
        ((sample(i), p) for i, p in enumerate(pictures)),
        1,
        1024,
        EmbedParams(backend="openvino"),
        networks,
    )
    assert label in {x.label for x in document.labels}


def test_stage_stores_the_keyframes_vectors_under_a_budget(networks: Path, tmp_path: Path) -> None:
    """The whole computation, from a file's samples to the blob."""
    rng = np.random.default_rng(8)
    scenes = [rng.integers(0, 256, (9, 16, 3), dtype=np.uint8) for _ in range(2)]
    frames = [np.kron(scenes[i >= 40], np.ones((20, 20, 1), np.uint8)) for i in range(80)]
    path = write_video(tmp_path / "two.mp4", frames, fps=10)
    work = tmp_path / "sampled"
    work.mkdir()
    sampled = decode(path, probe(path), SampleParams(fixed=True), work)
    key = sampled.samples[17]
    span = TimeSpan(
        start_pts=key.pts,
        end_pts=key.end_pts,
        time_base_num=sampled.time_base_num,
        time_base_den=sampled.time_base_den,
    )
    keyframe = Keyframe(
        span=span,
        shot_ordinal=0,
        frame=key.frame,
        sample_name=key.name,
        reason="sharpest",
        energy=1.0,
    )
    shots = ShotsDocument(shots=(), keyframes=(keyframe,), coverage=sampled.coverage)
    inputs = {name: work / name for name in ("samples.zip", "pts.npy")}
    for name, document in (("sample", sampled), ("shots", shots)):
        inputs[name] = tmp_path / f"{name}.json"
        inputs[name].write_text(document.model_dump_json())
    params = EmbedParams(vectors_per_s=0.5, backend="openvino")
    document = embed_stage(StageCall(inputs, params, tmp_path, networks, threads=1))
    stored = np.load(tmp_path / "embeddings.npy")
    names = [e.sample_name for e in document.embedded]
    assert len(names) == len(stored) == 4
    assert key.name in names
    assert document.vectors_left_out == len(sampled.samples) - 4
    assert document.degraded == ()
    # Each of the two scenes has one that stands for it.
    assert len({e.pts < sampled.samples[-1].end_pts // 2 for e in document.embedded}) == 2
