"""Rendered worlds through the whole flow, read by SQL, against the truth of re-simulation.

`reelgraph bench causal-world` judges two hundred such worlds by the engines alone; here ten of them
take the way of any video: object store, worker, every stage, Postgres.
"""

import json

import pytest

from flows.bench.causal_world import PIXELS_F1
from flows.bench.causal_world_outcome import Tally
from flows.bench.causal_world_pixels import pixel_world, render, things_of
from flows.bench.causal_world_simulation import LEVELS, true_edges

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_WORLDS = 2 * len(LEVELS)


def test_edges_of_rendered_worlds_by_sql(stack, tmp_path):
    for index in range(_WORLDS):
        render(pixel_world(index), tmp_path / f"world_{index:02}.mp4")
    done = stack.call("run", "--json", str(tmp_path), timeout_s=1500)
    outcomes = json.loads(done.stdout)
    assert [o["status"] for o in outcomes] == ["done"] * _WORLDS, done.stderr
    tally = Tally()
    for outcome in outcomes:
        index = int(outcome["source"].removesuffix(".mp4")[-2:])
        edges = stack.sql(
            "select distinct cause_type, effect_type from reel.causal_edges "
            f"where video_id = '{outcome['video_id']}' and verdict = 'causal'"
        )
        found = things_of(frozenset((e["cause_type"], e["effect_type"]) for e in edges))
        tally.add(found, true_edges(pixel_world(index))[0])
    assert tally.f1 is not None
    assert tally.f1 >= PIXELS_F1, tally
