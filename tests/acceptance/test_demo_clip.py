"""The demo clip by the real flow, against the truth that the clip was made with."""

import json
import re

import pytest

ORDER = "order by start_s"


@pytest.fixture(scope="module")
def truth(clips_dir):
    return json.loads((clips_dir / "demo.truth.json").read_text())


@pytest.fixture(scope="module")
def outcome(stack, clips_dir):
    return stack.run(str(clips_dir / "demo.mp4"))


@pytest.fixture(scope="module")
def rows(stack, outcome):
    def read(view, columns, order=ORDER):
        where = f"where video_id = '{outcome['video_id']}'"
        return stack.sql(f"select {columns} from reel.{view} {where} {order}")

    return read


def test_the_run_is_done_and_counted(outcome):
    assert outcome["status"] == "done", outcome
    assert outcome["error"] is None
    assert not outcome["cached_stages"] or outcome["cached_stages"] == ["fetch"]
    assert set(outcome["computed_stages"]) >= {
        "probe", "sample", "shots", "embed", "listen", "read_text", "events", "causes",
        "reason", "publish",
    }  # fmt: skip
    for name in ("shots", "keyframes", "utterances", "texts", "events", "answers"):
        assert outcome["counts"][name] > 0, name


def test_the_asset_is_described(rows, truth):
    (video,) = rows("videos", "*", "")
    assert (video["width"], video["height"]) == (truth["width"], truth["height"])
    assert video["frame_count"] == truth["n_frames"]
    assert video["verdict"] == "complete"
    assert video["decoded_fraction"] == 1.0


def test_cuts_are_where_they_were_made(rows, truth):
    shots = rows(
        "shots", "start_frame, end_frame, start_s, start_pts, time_base_num, time_base_den"
    )
    assert [shot["start_frame"] for shot in shots] == [0, *truth["cut_frames"]]
    assert shots[-1]["end_frame"] == truth["n_frames"]
    for shot in shots:
        exact = shot["start_pts"] * shot["time_base_num"] / shot["time_base_den"]
        assert shot["start_s"] == exact


def test_on_screen_text_is_read_in_its_span(rows, truth):
    found = rows("texts", "text, start_s, end_s, confidence")
    for line in truth["texts"]:
        start, end = line["start_frame"] / truth["fps"], line["end_frame"] / truth["fps"]
        matches = [
            text
            for text in found
            if plain(text["text"]) == plain(line["text"])
            and abs(text["start_s"] - start) <= 0.3
            and abs(text["end_s"] - end) <= 0.3
        ]
        assert len(matches) == 1, (line, found)


def test_speech_is_heard_at_its_time(rows, truth):
    words = rows("words", "text, start_s, end_s")
    jfk = next(t for t in truth["transcript"] if "ask not" in t["text"])
    within = [w for w in words if jfk["start_s"] - 0.5 <= w["start_s"] <= jfk["end_s"] + 0.5]
    said = plain(" ".join(w["text"] for w in within))
    assert "ask not what your country can do for you" in said
    assert abs(within[0]["start_s"] - jfk["start_s"]) <= 0.5
    # The truth's end is where the sound has died away, later than the word.
    assert jfk["end_s"] - 1.0 <= within[-1]["end_s"] <= jfk["end_s"] + 0.3


def test_the_strike_is_found_to_cause_the_bell(rows, truth):
    edges = rows("causal_edges", "*", "and cause_event is null")
    causal = [e for e in edges if e["verdict"] == "causal"]
    bell = [e for e in causal if e["effect_type"] == "sound:onset"]
    assert bell, [(e["cause_type"], e["effect_type"], e["verdict"], e["reason"]) for e in edges]
    lag = truth["bell_s"][0] - truth["strike_motion_start_frames"][0] / truth["fps"]
    assert all(e["cause_type"].startswith("motion:") for e in bell)
    assert any(abs(e["lag_s"] - lag) <= 0.4 for e in bell)
    assert not [
        e for e in causal if e["cause_type"] == "sound:onset" and "motion" in e["effect_type"]
    ]
    assert all(e["placebo_rate"] is not None and e["effective_n"] >= 5 for e in causal)


def test_every_answer_is_cited_by_facts_that_exist(stack, rows, outcome):
    answers = rows("answers", "kind, claim, cites, verdict", "")
    assert {a["kind"] for a in answers} == {
        "summary", "chapters", "why", "next", "what_if", "order", "intent", "consistent",
    }  # fmt: skip
    unknown = stack.sql(
        "select count(*) as n from reel.answers a cross join unnest(a.cites) cited"
        f" where a.video_id = '{outcome['video_id']}'"
        " and not exists (select from reel.facts f where f.fact_id = cited)"
    )
    assert unknown == [{"n": 0}]


def test_what_was_not_looked_at_is_said(rows):
    coverage = {c["stage"]: c for c in rows("coverage", "*", "")}
    assert coverage["listen"]["covered_s"] > 50
    assert coverage["pose"]["covered_s"] > 50
    assert coverage["actions"]["covered_s"] > 50
    assert coverage["probe"]["covered_s"] == 0
    assert coverage["probe"]["reason"]


def test_why_leads_from_a_word_to_the_bytes(stack, rows, outcome):
    utterance = rows("utterances", "fact_id")[0]["fact_id"]
    steps = stack.sql(f"select * from reel.why('{utterance}')")
    kinds = {step["kind"] for step in steps}
    assert {"fact", "stage_run", "model", "code", "content", "object", "run"} <= kinds
    hashes = {step["hash"] for step in steps}
    assert outcome["sha256"] in hashes | {step["id"] for step in steps}
    done = stack.call("why", utterance)
    assert done.returncode == 0
    assert outcome["sha256"] in done.stdout


def test_search_finds_the_moment(stack, outcome):
    done = stack.call("search", "--json", "country can do for you")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)[0]
    assert first["video_id"] == outcome["video_id"]
    assert 9 <= first["start_s"] <= 21


def test_show_tells_the_story(stack, clips_dir):
    done = stack.call("show", str(clips_dir / "demo.mp4"))
    assert done.returncode == 0, done.stderr
    for part in ("TIMELINE", "CAUSAL CHAINS", "ANSWERS", "COVERAGE", "BELL TEST 12 RUNS"):
        assert part in done.stdout


def plain(text):
    return " ".join(re.sub(r"[^a-z0-9' ]", " ", text.lower()).split())
