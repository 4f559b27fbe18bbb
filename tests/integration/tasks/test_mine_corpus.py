"""Mining a corpus through real services: parts kept, edges published, lineage to every video."""

import base64
import gc
import hashlib
import re
import warnings
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import numpy as np
import pytest
from PIL import Image
from store_data import COVERED, Pipeline, digest, rows, value

from engines.contracts.causal import Event, EventsDocument, MinerParams
from engines.contracts.media import Keyframe, Shot, ShotsDocument
from engines.contracts.speech import ListenDocument, Utterance
from engines.contracts.time import TimeSpan
from engines.errors import ObjectSupersededError, UsageError
from flows.deployments import register
from flows.mine_again import mine_again
from tasks.mine_corpus import (
    Mined,
    Parts,
    count_parts,
    open_corpus_run,
    pool_parts,
    publish_corpus,
)
from tasks.resources import Resources
from tasks.settings import Settings
from tasks.store import corpora, graphs, lineage, results, runs
from tasks.store.corpora import CorpusName
from tasks.store.publish import PublishRequest, publish
from tasks.store.rows import Source

PARAMS = MinerParams(permutations=100, bootstraps=60, placebo_runs=3)
SHOP = CorpusName(bucket="videos", prefix="shop/")
LENGTH_S = 60.0


def instant(at_s: float, end_s: float | None = None) -> TimeSpan:
    return TimeSpan.from_seconds(at_s, at_s if end_s is None else end_s, rate_hz=90_000)


def timeline(number: int, *, works: bool) -> EventsDocument:
    """A lamp, a bell that follows it or does not, and something unrelated."""
    rng = np.random.default_rng([number, 11])
    lit = np.sort(rng.uniform(1, LENGTH_S - 5, 7))
    rung = lit + 0.6 + 0.03 * rng.normal(size=7) if works else rng.uniform(0, LENGTH_S, 7)
    times = [(t, "light:on", "motion") for t in lit]
    times += [(t, "sound:bell", "sound") for t in rung]
    times += [(t, "motion:burst", "motion") for t in rng.uniform(0, LENGTH_S, 8)]
    return EventsDocument(
        coverage=COVERED,
        events=tuple(
            Event(
                span=instant(t), type=kind, subject=None, description=f"{kind} at {t:.1f}",
                source=source, evidence=(),
            )
            for t, kind, source in sorted(times)
        ),
        observed=(instant(0.0, LENGTH_S),),
    )  # fmt: skip


def picture(world: Resources, tmp: Path, number: int) -> str:
    """A stored keyframe; its address."""
    path = tmp / f"{number}.jpg"
    Image.new("RGB", (320, 180), (20 * number % 256, 90, 90)).save(path)
    return world.artifacts.put(path, "image/jpeg").uri


def put_video(
    world: Resources, tmp: Path, number: int, *, works: bool = True, key: str = ""
) -> UUID:
    """Publish one video with its timeline, as its own flow would."""
    key = key or f"shop/{number:02d}.mp4"
    asset = Pipeline(world.db, key=key, content=f"bytes {number}", etag=f"e{number}")
    run_id, video_id = asset.start()
    documents = {
        "shots": ShotsDocument(
            coverage=COVERED,
            shots=(
                Shot(span=instant(0, 60), start_frame=0, end_frame=1500, method="start", score=1),
            ),
            keyframes=(
                Keyframe(
                    span=instant(2, 2.04), shot_ordinal=0, frame=50, sample_name="k.jpg",
                    reason="sharpest", energy=0.3,
                ),
            ),
        ),
        "listen": ListenDocument(
            coverage=COVERED,
            utterances=(
                Utterance(
                    span=instant(0, 60), text=f"words of {number}", language="en", confidence=0.9,
                    trust=0.8, no_speech_probability=0.0, words=(),
                ),
            ),
            sounds=(),
            model="whisper",
        ),
        "events": timeline(number, works=works),
    }  # fmt: skip
    sources, inputs = [], {"content": digest(f"bytes {number}")}
    for stage, document in documents.items():
        path = tmp / f"{stage}-{number}"
        path.write_text(document.model_dump_json())
        artifact = world.artifacts.put(path, "application/json")
        identity = runs.StageIdentity(stage=stage, code_version="c1", engine=stage)
        cache_key = digest(f"{stage}{artifact.sha256}")
        stage_run_id = runs.start_stage_run(world.db, run_id, identity, cache_key=cache_key)
        lease = results.acquire_lease(world.db, cache_key, lease_s=30)
        if lease is not None:
            found = results.store_result(
                world.db, lease, stage=stage, stage_run_id=stage_run_id, recipe={"params": {}},
                inputs=inputs, document=artifact, blobs={},
            )  # fmt: skip
            outcome = runs.StageOutcome(status="done")
            runs.finish_stage_run(world.db, stage_run_id, outcome)
            sources.append(Source(stage, found.cache_key, stage_run_id, document))
    request = PublishRequest(
        run_id=run_id, video_id=video_id, sources=tuple(sources),
        image_uris={"k.jpg": picture(world, tmp, number)},
    )  # fmt: skip
    assert publish(world.db, request).status == "published"
    runs.finish_run(world.db, run_id, "done")
    return video_id


def mine(corpus: CorpusName = SHOP) -> tuple[Parts, Mined]:
    """One run of the flow, without Prefect."""
    with open_corpus_run(corpus, PARAMS, None) as (run, _):
        parts = count_parts(run, corpus, PARAMS)
        return parts, publish_corpus(run, parts, pool_parts(run, parts, PARAMS))


@pytest.mark.timeout(280)
def test_a_corpus_is_mined_published_and_grows(world: Resources, tmp_path: Path) -> None:
    db = world.db
    members = {put_video(world, tmp_path, number) for number in range(6)}
    put_video(world, tmp_path, 90, works=False, key="elsewhere/90.mp4")
    put_video(world, tmp_path, 3, key="shop/copy of 03.mp4")
    parts, mined = mine()
    # The copy of a video is no further evidence, and what lies elsewhere is not looked at.
    assert (parts.computed, mined.num_videos, mined.status) == (6, 6, "published")
    [edge] = rows(db, "select * from reel.causal_edges where verdict = 'causal'")
    assert (edge["scope"], edge["cause_type"], edge["effect_type"]) == (
        "corpus", "light:on", "sound:bell",
    )  # fmt: skip
    assert (edge["num_videos"], edge["cause_event"]) == (6, None)
    _chain_has_its_evidence(world, members)
    _every_video_is_in_the_lineage(world, edge["fact_id"])
    before = rows(db, "select fact_id, stage_run_id from reel.causal_edges order by fact_id")

    parts, mined = mine()
    assert (parts.computed, mined.status) == (0, "unchanged")
    assert before == rows(
        db, "select fact_id, stage_run_id from reel.causal_edges order by fact_id"
    )
    put_video(world, tmp_path, 7)
    [held] = corpora.holding(db, "videos", "shop/07.mp4")
    assert (held.name, MinerParams.model_validate(held.params)) == (SHOP, PARAMS)
    assert held.latest_run_id == value(
        db, "select run_id from reel.runs where video_id = :id order by started_at desc limit 1",
        id=held.video_id,
    )  # fmt: skip
    assert corpora.holding(db, "videos", "elsewhere/90.mp4") == []
    assert corpora.holding(db, "other", "shop/07.mp4") == []
    parts, mined = mine()
    assert (parts.computed, mined.num_videos, mined.status) == (1, 7, "published")
    assert value(db, "select count(*) from reel.stage_runs where stage = 'part'") == 7
    assert value(db, "select count(*) from reel.videos where key like '%*'") == 0
    [corpus] = rows(db, "select * from reel.corpora")
    assert (corpus["bucket"], corpus["prefix"], corpus["num_videos"]) == ("videos", "shop/", 7)
    assert corpus["skipped_s"] == pytest.approx(7.0)


def _chain_has_its_evidence(world: Resources, members: set[UUID]) -> None:
    """From an effect to its root cause in one query."""
    steps = rows(
        world.db,
        "select * from reel.causal_chains where effect = 'sound:bell' and scope = 'corpus'"
        " order by step",
    )
    assert [(s["step"], s["event"], s["root"]) for s in steps] == [
        (0, "light:on", "light:on"),
        (1, "sound:bell", "light:on"),
    ]
    root, last = steps
    assert last["q_value"] < 0.05
    assert last["counterfactual_delta"] > 0.9
    assert last["test"].startswith("scan+")
    for step in steps:
        assert len(step["evidence"]) == len(step["at_s"]) == 3
        assert set(step["evidence_videos"]) <= members
        assert all(uri.startswith("s3://reelgraph-artifacts/") for uri in step["pictures"])
        assert all(words.startswith("words of") for words in step["words"])
    assert all(0.3 < b - a < 0.9 for a, b in zip(root["at_s"], last["at_s"], strict=True))
    graph = graphs.causal_graph(world.db, last["video_id"])
    assert [(e.cause, e.effect, e.num_videos) for e in graph.edges] == [
        ("light:on", "sound:bell", 6)
    ]
    assert all(node.image_uri and node.events == 7 for node in graph.nodes)


def _every_video_is_in_the_lineage(world: Resources, fact_id: UUID) -> None:
    steps = lineage.why(world.db, fact_id)
    bytes_of = {step.hash for step in steps if step.kind == "content"}
    assert bytes_of == {digest(f"bytes {number}") for number in range(6)}
    assert {step.name for step in steps if step.kind == "stage_run"} == {
        "mine_corpus", "part", "events",
    }  # fmt: skip
    assert sum(step.kind == "evidence" for step in steps) == 10
    objects = {step.id for step in steps if step.kind == "object"}
    assert "s3://videos/shop/05.mp4" in objects
    assert "s3://videos/elsewhere/90.mp4" not in objects


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_contradiction_abstention_and_an_empty_prefix(world: Resources, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no published video lies below videos/shop/"):
        mine()
    assert value(world.db, "select status from reel.runs") == "failed"
    put_video(world, tmp_path, 0)
    put_video(world, tmp_path, 1, works=False)
    _, mined = mine()
    assert mined.num_edges == 0
    [step] = rows(world.db, "select * from reel.causal_chains where event = 'sound:bell'")
    assert (step["verdict"], step["depth"], step["scope"]) == ("insufficient_evidence", 0, "corpus")
    assert "1 of 2 videos show it" in str(step["reason"])
    everything, _ = mine(CorpusName())
    assert everything.computed == 0


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_newer_run_stands_and_row_order_changes_nothing(world: Resources, tmp_path: Path) -> None:
    for number in (4, 2, 0, 3, 1):
        put_video(world, tmp_path, number)
    with open_corpus_run(SHOP, PARAMS, None) as (old, _):
        parts = count_parts(old, SHOP, PARAMS)
        pooled = pool_parts(old, parts, PARAMS)
        _, mined = mine()
        with pytest.raises(ObjectSupersededError, match="begun later"):
            publish_corpus(old, parts, pooled)
    assert mined.num_edges == 1
    document = world.artifacts.local(pooled.document).read_bytes()
    backwards = parts.model_copy(update={"blobs": dict(reversed(parts.blobs.items()))})
    with open_corpus_run(SHOP, PARAMS, None) as (run, _):
        again = pool_parts(run, backwards, PARAMS)
    assert again.cached
    assert again.document == hashlib.sha256(document).hexdigest()


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_the_flow_shows_its_graph_in_prefect(world: Resources, tmp_path: Path) -> None:
    """The flow itself, on a Prefect server of its own."""
    from prefect.artifacts import Artifact
    from prefect.testing.utilities import prefect_test_harness

    from flows.mine_corpus import mine_corpus

    for number in range(5):
        put_video(world, tmp_path, number)
    with prefect_test_harness(server_startup_timeout=120):
        run_id = mine_corpus(bucket="videos", prefix="shop/", params=PARAMS)
        [run] = rows(world.db, "select * from reel.runs where run_id = :id", id=run_id)
        assert (run["status"], run["current"]) == ("done", True)
        artifact = Artifact.get(f"graph-{run['video_id']}")
    with warnings.catch_warnings():
        # Prefect leaves the connection to its server to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    assert artifact is not None
    text = str(artifact.data)
    [drawn] = re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", text)
    svg = base64.b64decode(drawn).decode()
    assert "sound:bell" in text
    assert "sound:bell" in svg
    assert svg.count("data:image/jpeg;base64,") == 2


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_new_video_has_its_corpus_mined_again_once(
    world: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scheduled on a real Prefect server; several videos share a run that has not begun."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    for number in range(2):
        put_video(world, tmp_path, number)
    mine()
    with prefect_test_harness(server_startup_timeout=120):
        url = str(PREFECT_API_URL.value())
        monkeypatch.setenv("PREFECT_API_URL", url)
        asked = Resources(Settings(mine_after_s=3600.0))
        with httpx.Client(base_url=url) as client:
            for pool in ("cpu", "gpu", "llm"):
                client.post("/work_pools/", json={"name": pool, "type": "process"})
            register(url)
            deployment = client.get("/deployments/name/mine-corpus/mine-corpus").json()
            assert deployment["global_concurrency_limit"]["limit"] == 1
            [first] = mine_again(asked, "videos", "shop/02.mp4")
            assert mine_again(asked, "videos", "shop/03.mp4") == [first]
            assert mine_again(asked, "videos", "elsewhere/02.mp4") == []
            assert mine_again(Resources(Settings(mine_after_s=-1.0)), "videos", "shop/02.mp4") == []
            run = client.get(f"/flow_runs/{first}").json()
            assert run["parameters"] == {
                "bucket": "videos", "prefix": "shop/", "params": PARAMS.model_dump(mode="json"),
            }  # fmt: skip
            assert run["state"]["type"] == "SCHEDULED"
            created, due = (
                datetime.fromisoformat(run[name]) for name in ("created", "expected_start_time")
            )
            assert due - created > timedelta(seconds=3000)
            mine()
            [second] = mine_again(asked, "videos", "shop/04.mp4")
            cancelled = {"state": {"type": "CANCELLED"}, "force": True}
            client.post(f"/flow_runs/{second}/set_state", json=cancelled)
            [third] = mine_again(asked, "videos", "shop/04.mp4")
        asked.close()
        assert len({first, second, third}) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_mining_again_never_fails_a_video(world: Resources, tmp_path: Path) -> None:
    put_video(world, tmp_path, 0)
    mine()
    nowhere = Resources(Settings(prefect_api_url="http://127.0.0.1:1/api"))
    assert mine_again(nowhere, "videos", "shop/01.mp4") == []
    nowhere.close()
