"""Keys are decoded once or not at all, by source, and only objects that matter come through."""

import base64
import json
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import UsageError
from tasks.objects.notifications import (
    ObjectNotification,
    no_run_reason,
    parse_s3,
    parse_seaweedfs,
    unwatched_reason,
)

# What MinIO sends for a PUT of `in/a b+c%20d 100% é🎬.mp4`, shortened.
MINIO_PUT = """{
  "EventName": "s3:ObjectCreated:Put",
  "Key": "videos/in/a b+c%20d 100% é🎬.mp4",
  "Records": [{
    "eventVersion": "2.0", "eventSource": "minio:s3", "awsRegion": "",
    "eventTime": "2026-01-31T12:00:00.000Z", "eventName": "s3:ObjectCreated:Put",
    "s3": {
      "s3SchemaVersion": "1.0", "configurationId": "Config",
      "bucket": {"name": "videos", "arn": "arn:aws:s3:::videos"},
      "object": {
        "key": "in%2Fa+b%2Bc%2520d+100%25+%C3%A9%F0%9F%8E%AC.mp4",
        "size": 299353, "eTag": "0c1b4f0e6f6b7a3b9a5e2d1c0f9e8d7c",
        "contentType": "video/mp4", "sequencer": "17A1B2C3D4E5F607"
      }
    },
    "source": {"host": "127.0.0.1"}
  }]
}"""


def s3_event(name: str, key: str, **fields: object) -> dict[str, Any]:
    stored = {"key": key, "size": 10, "eTag": "e", "sequencer": "17A1", **fields}
    return {
        "Records": [{"eventName": name, "s3": {"bucket": {"name": "videos"}, "object": stored}}]
    }


def filer_event(
    path: str, kind: str = "create", *, folder: bool = False, size: int = 10
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": path.rpartition("/")[2],
        "chunks": [{"size": size, "modified_ts_ns": 1796024706128798329}] if size else [],
        "attributes": {"file_size": size, "mtime": 1796024706},
        "extended": {"Seaweed-X-Amz-ETag": base64.b64encode(b"abc123").decode()},
    }
    if folder:
        entry["is_directory"] = True
    which = "old_entry" if kind == "delete" else "new_entry"
    return {"event_type": kind, "key": path, "message": {which: entry}}


def test_minio_key_is_decoded_once() -> None:
    parsed = parse_s3(json.loads(MINIO_PUT))
    assert parsed.notifications == (
        ObjectNotification(
            bucket="videos",
            key="in/a b+c%20d 100% é🎬.mp4",
            etag="0c1b4f0e6f6b7a3b9a5e2d1c0f9e8d7c",
            sequencer="17A1B2C3D4E5F607",
            size_bytes=299353,
            event="created",
        ),
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_key_round_trips_through_s3(key: str) -> None:
    parsed = parse_s3(s3_event("ObjectCreated:Put", quote_plus(key)))
    assert parsed.notifications[0].key == key


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_filer_key_is_taken_as_it_stands(key: str) -> None:
    key = f"in/{key}"
    parsed = parse_seaweedfs(filer_event(f"/buckets/videos/{key}"))
    assert parsed.notifications[0].key == key


def test_composed_and_decomposed_letters_stay_two_keys() -> None:
    composed, decomposed = "é.mp4", "e\u0301.mp4"
    keys = {
        parse_s3(s3_event("ObjectCreated:Put", quote_plus(key))).notifications[0].key
        for key in (composed, decomposed)
    }
    assert keys == {composed, decomposed}


def test_the_source_decides_about_decoding() -> None:
    raw = "in/x%20y.mp4"
    assert parse_seaweedfs(filer_event(f"/buckets/videos/{raw}")).notifications[0].key == raw
    assert parse_s3(s3_event("ObjectCreated:Put", raw)).notifications[0].key == "in/x y.mp4"


def test_a_key_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UsageError, match="UnicodeDecodeError"):
        parse_s3(s3_event("ObjectCreated:Put", "in/%FF.mp4"))


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("s3:ObjectCreated:Put", "created"),
        ("ObjectCreated:CompleteMultipartUpload", "created"),
        ("s3:ObjectCreated:Copy", "created"),
        ("s3:ObjectRemoved:Delete", "removed"),
        ("s3:ObjectRemoved:DeleteMarkerCreated", "removed"),
        ("s3:LifecycleExpiration:Delete", "removed"),
    ],
)
def test_s3_event_names(name: str, event: str) -> None:
    assert parse_s3(s3_event(name, "in/base.mp4")).notifications[0].event == event


@pytest.mark.parametrize("name", ["s3:ObjectAccessed:Head", "s3:Replication:OperationFailed"])
def test_other_s3_events_name_no_object(name: str) -> None:
    parsed = parse_s3(s3_event(name, "in/base.mp4"))
    assert not parsed.notifications
    assert parsed.skipped == (f"{name.removeprefix('s3:')}: neither created nor removed",)


def test_the_test_message_of_a_subscription_is_acknowledged() -> None:
    body = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "videos"}
    parsed = parse_s3(body)
    assert not parsed.notifications
    assert parsed.skipped == ("s3:TestEvent of bucket videos",)


def test_quotes_and_null_version_are_no_part_of_the_identity() -> None:
    parsed = parse_s3(s3_event("ObjectCreated:Put", "a", eTag='"e-2"', versionId="null"))
    assert parsed.notifications[0].etag == "e-2"
    assert parsed.notifications[0].version_id is None


def test_a_removal_has_no_etag() -> None:
    body = s3_event("s3:ObjectRemoved:Delete", "a")
    for name in ("eTag", "size"):
        del body["Records"][0]["s3"]["object"][name]
    assert parse_s3(body).notifications[0].etag == ""
    assert parse_s3(body).notifications[0].size_bytes is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"Records": [{}]},
        {"Records": "x"},
        {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": {}}}]},
        s3_event("ObjectCreated:Put", ""),
        s3_event("ObjectCreated:Put", "a", size=-1),
        s3_event("ObjectCreated:Put", "a", eTag=7),
    ],
)
def test_other_documents_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="not an S3 event document"):
        parse_s3(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"event_type": "create", "key": "/buckets/videos/a", "message": None},
        {"event_type": "create", "key": "/buckets/videos/a", "message": {"new_entry": []}},
        json.loads(MINIO_PUT),
    ],
)
def test_other_documents_are_no_filer_event(body: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="not a SeaweedFS notification"):
        parse_seaweedfs(body)


def test_filer_event_of_an_upload() -> None:
    parsed = parse_seaweedfs(filer_event("/buckets/videos/in/b.mp4", "update"))
    assert parsed.notifications == (
        ObjectNotification(
            bucket="videos",
            key="in/b.mp4",
            etag="abc123",
            sequencer="18ecc2f458a1e279",
            size_bytes=10,
            event="created",
        ),
    )


def test_filer_sequencers_order_events_as_text() -> None:
    first = filer_event("/buckets/videos/a")
    later = filer_event("/buckets/videos/a")
    later["message"]["new_entry"]["chunks"][0]["modified_ts_ns"] += 1
    sequencers = [parse_seaweedfs(event).notifications[0].sequencer for event in (first, later)]
    assert all(sequencers)
    assert sequencers == sorted(sequencers, key=str)
    assert sequencers[0] != sequencers[1]


def test_filer_etag_falls_back_to_the_md5() -> None:
    body = filer_event("/buckets/videos/a")
    entry = body["message"]["new_entry"]
    del entry["extended"]
    entry["attributes"]["md5"] = base64.b64encode(bytes(16)).decode()
    assert parse_seaweedfs(body).notifications[0].etag == "0" * 32


def test_filer_rename_is_about_the_new_name() -> None:
    body = filer_event("/buckets/videos/old.mp4", "rename")
    body["message"]["new_entry"]["name"] = "new.mp4"
    body["message"]["new_parent_path"] = "/buckets/videos/in"
    assert parse_seaweedfs(body).notifications[0].key == "in/new.mp4"


def test_filer_version_of_an_object() -> None:
    body = filer_event("/buckets/videos/in/a.mp4.versions/v_00ab")
    found = parse_seaweedfs(body).notifications[0]
    assert (found.key, found.version_id) == ("in/a.mp4", "00ab")


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (filer_event("/buckets/videos/in", folder=True), "a folder"),
        (filer_event("/buckets/videos"), "a folder"),
        (filer_event("/buckets/videos/.uploads/x/0001.part"), "internal to the store"),
        (filer_event("/buckets/videos/.system/x"), "internal to the store"),
        (filer_event("/topics/.system/log"), "not in a bucket"),
    ],
)
def test_filer_events_that_name_no_object(event: dict[str, Any], why: str) -> None:
    parsed = parse_seaweedfs(event)
    assert not parsed.notifications
    assert parsed.skipped == (f"{event['key']}: {why}",)


def test_filer_delete_is_a_removal() -> None:
    body = filer_event("/buckets/videos/a", "delete")
    assert parse_seaweedfs(body).notifications[0].event == "removed"


def notification(**changes: Any) -> ObjectNotification:
    values: dict[str, Any] = {"bucket": "videos", "key": "in/a.mp4", "event": "created"}
    return ObjectNotification(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"key": "in/BASE.MP4"}, None),
        ({"key": "in/without-suffix"}, None),
        ({"bucket": "reelgraph-artifacts"}, "not the watched bucket"),
        ({"key": ".uploads/x"}, "internal to the store"),
        ({"key": ".system/x"}, "internal to the store"),
        ({"key": "out/a.mp4"}, "outside the watched prefix"),
        ({"key": "in/newfolder/"}, "a folder"),
    ],
)
def test_what_is_watched(changes: dict[str, Any], reason: str | None) -> None:
    found = unwatched_reason(notification(**changes), videos_bucket="videos", watched_prefix="in/")
    assert found == reason


def test_without_a_prefix_every_key_is_watched() -> None:
    found = unwatched_reason(notification(key="x"), videos_bucket="videos", watched_prefix="")
    assert found is None


@pytest.mark.parametrize(
    ("event", "size_bytes", "reason"),
    [
        ("created", 1, None),
        ("created", None, None),
        ("created", 0, "empty"),
        ("removed", None, "removed"),
    ],
)
def test_what_starts_no_run(event: str, size_bytes: int | None, reason: str | None) -> None:
    assert no_run_reason(event, size_bytes) == reason
