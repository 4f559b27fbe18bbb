"""Ids are made from what things are; these values are in users' tables and may never change."""

from uuid import UUID

from tasks.store.ids import fact_id_of, video_id_of


def test_ids_stay_what_they_are() -> None:
    video_id = video_id_of("videos", "a b+c%20é🎬.mp4")
    assert video_id == UUID("8b1ac9d7-fbdd-5603-b0a2-6a7cebb96a3d")
    assert fact_id_of(video_id, "k" * 64, "utterance", 3) == UUID(
        "1645b77b-c5e8-56dd-851c-f8c9645d5ee3"
    )


def test_bucket_and_key_cannot_be_mixed_up() -> None:
    assert video_id_of("a", "b/c") != video_id_of("a/b", "c")


def test_each_part_matters() -> None:
    video_id, other = video_id_of("a", "b"), video_id_of("a", "c")
    ids = {
        fact_id_of(video_id, "k", "word", 0),
        fact_id_of(other, "k", "word", 0),
        fact_id_of(video_id, "l", "word", 0),
        fact_id_of(video_id, "k", "text", 0),
        fact_id_of(video_id, "k", "word", 1),
    }
    assert len(ids) == 5
