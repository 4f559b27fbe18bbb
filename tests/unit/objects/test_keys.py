"""Keys are data: taken as they stand, never decoded, never a local path."""

from pathlib import Path

import pytest

from engines.errors import UsageError
from tasks.objects.client import PART_BYTES, expected_etag
from tasks.objects.keys import MAX_KEY_BYTES, ObjectRef, artifact_key, parse_s3_uri, upload_key

SHA = "0123456789ab" + "c" * 52


@pytest.mark.parametrize(
    "key",
    ["a.mp4", "in/a b+c%20d 100% é🎬.mp4", "x%20y.mp4", "/leading", "a//b", "..", "q?x=1#y"],
)
def test_a_key_comes_back_byte_for_byte(key):
    assert parse_s3_uri(f"s3://videos/{key}") == ObjectRef("videos", key)
    assert str(parse_s3_uri(f"s3://videos/{key}")) == f"s3://videos/{key}"


def test_composed_and_decomposed_letters_stay_two_keys():
    composed, decomposed = "\u00e9.mp4", "e\u0301.mp4"
    assert parse_s3_uri(f"s3://v/{composed}").key != parse_s3_uri(f"s3://v/{decomposed}").key


@pytest.mark.parametrize("uri", ["videos/a.mp4", "s3://", "s3:///a.mp4", "http://x/y"])
def test_what_is_no_address_is_refused(uri):
    with pytest.raises(UsageError):
        parse_s3_uri(uri)


def test_two_files_of_one_name_do_not_collide():
    other = "f" * 64
    assert upload_key(Path("a/clip.mp4"), SHA) != upload_key(Path("b/clip.mp4"), other)
    assert upload_key(Path("clip.mp4"), SHA) == "uploads/0123456789ab/clip.mp4"


def test_a_name_that_is_no_unicode_still_gives_a_key():
    key = upload_key(Path("caf\udce9.mp4"), SHA)
    assert key.encode()


def test_a_name_too_long_for_a_key_is_refused():
    with pytest.raises(UsageError, match="too long"):
        upload_key(Path("x" * MAX_KEY_BYTES), SHA)


def test_artifacts_are_named_by_content_alone():
    assert artifact_key(SHA) == f"sha256/01/23/{SHA}"


def test_etag_of_one_part_and_of_several(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"abc")
    large.write_bytes(bytes(PART_BYTES + 1))
    # md5sum of the file; and of the two parts' digests put together.
    assert expected_etag(small) == "900150983cd24fb0d6963f7d28e17f72"
    assert expected_etag(large).endswith("-2")
