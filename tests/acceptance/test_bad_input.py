"""One clear line, the right exit code, no half rows, nothing retried for ever."""

import json

import hostile
import pytest
from made_media import noise_free_scene, tone, write_video


def refused(stack, path):
    done = stack.call("run", "--json", str(path))
    (outcome,) = json.loads(done.stdout)
    return done, outcome


@pytest.mark.parametrize(
    "maker",
    ["text_renamed", "hls_playlist", "concat_script", "session_description", "random_bytes"],
)
def test_what_is_not_media_is_refused_once(stack, tmp_path, maker):
    done, outcome = refused(stack, hostile.REFUSED[maker](tmp_path))
    assert done.returncode == 3, done.stderr
    assert outcome["status"] == "refused"
    assert outcome["error"]["retryable"] is False
    assert outcome["error"]["message"]
    assert sum(outcome["counts"].values()) == 0
    attempts = stack.sql(
        "select count(*) as n from reel.stage_runs"
        f" where run_id = '{outcome['run_id']}' and stage = 'probe'"
    )
    assert attempts == [{"n": 1}]


def test_zero_bytes(stack, tmp_path):
    done, outcome = refused(stack, hostile.REFUSED["zero_bytes"](tmp_path))
    assert done.returncode == 3
    assert outcome["error"]["code"] == "empty_input"


def test_one_bad_source_does_not_lose_the_others(stack, tmp_path, clips_dir):
    bad = hostile.REFUSED["text_renamed"](tmp_path)
    done = stack.call("run", "--json", str(bad), str(clips_dir / "cuts.mp4"), "no-such-file.mp4")
    outcomes = json.loads(done.stdout)
    assert [o["status"] for o in outcomes] == ["refused", "done", "failed"]
    assert done.returncode == 3


def test_a_missing_object(stack):
    done = stack.call("run", "--json", "s3://videos/in/gone.mp4")
    (outcome,) = json.loads(done.stdout)
    assert done.returncode == 1
    assert outcome["error"]["code"] == "object_missing"
    attempts = stack.sql(
        f"select count(*) as n from reel.stage_runs where run_id = '{outcome['run_id']}'"
    )
    assert attempts[0]["n"] <= 3


def test_a_wrong_credential(stack, clips_dir):
    done = stack.call(
        "run", str(clips_dir / "cuts.mp4"), env={"REELGRAPH_S3_SECRET_KEY": "not-the-secret"}
    )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "refused access" in done.stderr


@pytest.mark.parametrize(
    "named",
    [
        {"REELGRAPH_DATABASE_URL": "postgresql://a:b@127.0.0.1:9/x"},
        {"REELGRAPH_S3_ENDPOINT": "http://127.0.0.1:9"},
        {"PREFECT_API_URL": "http://127.0.0.1:9/api"},
    ],
    ids=["postgres", "objects", "prefect"],
)
def test_a_service_that_is_down(stack, clips_dir, named):
    done = stack.call("run", str(clips_dir / "late_audio.mp4"), env=named)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr


def test_no_stack_at_all(stack, tmp_path, clips_dir):
    done = stack.call("run", str(clips_dir / "cuts.mp4"), env={"REELGRAPH_HOME": str(tmp_path)})
    assert done.returncode == 4
    assert "reelgraph up" in done.stderr
    assert done.stderr.count("\n") == 1


def test_usage(stack):
    assert stack.call("run").returncode == 2
    assert stack.call("show", "no-such-video").returncode == 2
    assert stack.call("sql", "selec 1").returncode == 2
    assert stack.call("why", "not-a-uuid").returncode == 2
    assert stack.call("bench", "nosuch").returncode == 2


def test_a_video_without_sound_runs_the_stages_that_make_sense(stack, tmp_path):
    path = write_video(tmp_path / "silent film.mp4", noise_free_scene(1, 50))
    outcome = stack.run(str(path))
    assert outcome["status"] == "done"
    assert "listen" not in outcome["computed_stages"]
    (coverage,) = stack.sql(
        "select covered_s, reason from reel.coverage"
        f" where stage = 'listen' and video_id = '{outcome['video_id']}'"
    )
    assert coverage == {"covered_s": 0.0, "reason": "the file has no sound"}


def test_sound_without_a_picture_too(stack, tmp_path):
    path = write_video(tmp_path / "tone.m4a", [], audio=tone(440, 3.0), audio_rate=16000)
    outcome = stack.run(str(path))
    assert outcome["status"] == "done", outcome
    assert outcome["counts"]["shots"] == 0
    assert outcome["counts"]["utterances"] == 0
    assert "listen" in outcome["computed_stages"]


def test_a_damaged_file_gives_what_can_be_decoded(stack, tmp_path):
    outcome = stack.run(str(hostile.damaged(tmp_path, 3000)))
    assert outcome["status"] == "partial", outcome
    (video,) = stack.sql(
        "select verdict, decoded_fraction from reel.videos"
        f" where video_id = '{outcome['video_id']}'"
    )
    assert video["verdict"] == "partial"
    assert 0 < video["decoded_fraction"] < 1
