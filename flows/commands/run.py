"""run: process videos by the real flow on the real worker, and wait for them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

from engines.errors import (
    ReelgraphError,
    ServiceUnavailableError,
    UsageError,
)
from flows.commands.output import dump, say, tell
from flows.commands.sources import Source, resolve
from flows.prefect_api import PROCESS_VIDEO, FlowRunState, PrefectApi
from flows.render import chain_lines
from tasks.resources import Resources, get_resources
from tasks.store import runs, timeline

POLL_S = 0.2
PREFECT_POLL_S = 2.0
"""How often Prefect is asked too: only it knows of a run that died before its first row."""
FINAL = {"done", "partial", "failed", "refused", "superseded", "crashed"}
EXIT_CODES = {"done": 0, "partial": 0, "refused": 3}

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@dataclass
class Outcome:
    """How one source went, as ``--json`` prints it."""

    source: str
    video_id: UUID | None = None
    sha256: str | None = None
    status: str = "failed"
    run_id: UUID | None = None
    seconds: float = 0.0
    cached_stages: list[str] = field(default_factory=list)
    computed_stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    exit_code: int = 1

    def fail(self, error: ReelgraphError, status: str | None = None) -> "Outcome":
        """Note an error that kept the source from becoming a run."""
        self.status = status or (
            "refused" if error.exit_code == EXIT_CODES["refused"] else "failed"
        )
        self.error = {"code": error.code, "message": str(error), "retryable": error.retryable}
        self.exit_code = error.exit_code
        return self

    def document(self) -> dict[str, Any]:
        """All but the exit code."""
        return {name: value for name, value in vars(self).items() if name != "exit_code"}


def run(sources: list[str], parameters: list[str], *, as_json: bool) -> None:
    """Process every source and print how each went.

    Raises:
        ReelgraphError: the worst of what happened, after everything was printed.
        SystemExit: with the worst exit code when some source failed.
    """
    params = parse_parameters(parameters)
    world = get_resources()
    outcomes = []
    with PrefectApi(world.api_url) as api:
        started = [_start(api, source, params) for source in resolve(sources, world)]
        for outcome, flow_run_id in started:
            if flow_run_id is not None:
                _wait(world, api, flow_run_id, outcome)
            outcomes.append(outcome)
            if not as_json:
                _print(world, outcome)
    if as_json:
        dump([outcome.document() for outcome in outcomes])
    worst = max(outcome.exit_code for outcome in outcomes)
    if worst:
        raise SystemExit(worst)


def parse_parameters(parameters: list[str]) -> dict[str, Any]:
    """``stage.name=value`` pairs as the flow's ``params``; a value is JSON, or else text.

    Raises:
        UsageError: not of that form, or no such parameter, or a value that does not fit.
    """
    tree: dict[str, Any] = {}
    for pair in parameters:
        path, equals, text = pair.partition("=")
        stage, dot, name = path.partition(".")
        if not (equals and dot and name):
            msg = f"a parameter is written stage.name=value, not {pair!r}"
            raise UsageError(msg)
        try:
            value: JsonValue = _JSON.validate_json(text)
        except ValidationError:
            value = text
        tree.setdefault(stage, {})[name] = value
    if tree:
        _check(tree)
    return tree


def _check(tree: dict[str, Any]) -> None:
    from flows.parameters import PipelineParams

    try:
        PipelineParams.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        msg = f"parameter {where}: {first['msg']} (got {first['input']!r})"
        raise UsageError(msg) from error


def _start(api: PrefectApi, source: Source, params: dict[str, Any]) -> tuple[Outcome, UUID | None]:
    outcome = Outcome(source=source.label, sha256=source.sha256)
    if source.ref is None:
        return outcome.fail(source.error or UsageError("no such source")), None
    body = {"bucket": source.ref.bucket, "key": source.ref.key}
    flow_run_id = api.start(PROCESS_VIDEO, body | ({"params": params} if params else {}))
    tell(f"{source.label}: run {flow_run_id} started")
    return outcome, flow_run_id


def _wait(world: Resources, api: PrefectApi, flow_run_id: UUID, outcome: Outcome) -> None:
    """Follow a run to its end; its progress goes to stderr, its result into ``outcome``."""
    begun = time.monotonic()
    progress: runs.RunProgress | None = None
    shown: set[tuple[UUID, str]] = set()
    for state in _states(api, flow_run_id):
        progress = runs.known_progress(world.db, flow_run_id)
        if progress is not None:
            _tell_progress(progress, shown)
            if progress.status in FINAL:
                break
        if state is not None and state.is_final and (progress is None or state.type == "CRASHED"):
            break
    outcome.seconds = round(time.monotonic() - begun, 3)
    if progress is None or progress.status not in FINAL:
        _end_dead(world, progress, outcome)
        return
    _fill(world, progress, outcome)


def _states(api: PrefectApi, flow_run_id: UUID) -> Iterator[FlowRunState | None]:
    """Tick for ever; now and then with what Prefect says."""
    asked = 0.0
    while True:
        state = None
        if time.monotonic() - asked > PREFECT_POLL_S:
            state, asked = api.state(flow_run_id), time.monotonic()
        yield state
        time.sleep(POLL_S)


def _tell_progress(progress: runs.RunProgress, shown: set[tuple[UUID, str]]) -> None:
    for stage in progress.stages:
        if (stage.stage_run_id, stage.status) in shown:
            continue
        shown.add((stage.stage_run_id, stage.status))
        took = "" if stage.seconds is None else f" in {stage.seconds:.1f} s"
        why = stage.error_message or "; ".join(stage.degraded)
        tell(f"  {stage.stage:10} {stage.status}{took}{': ' + why if why else ''}")


def _end_dead(world: Resources, progress: runs.RunProgress | None, outcome: Outcome) -> None:
    """The process of the run is gone and its row never ended: end it here."""
    error = ServiceUnavailableError("the flow's process died; run it again and it resumes")
    outcome.fail(error, "crashed")
    outcome.exit_code = 1
    if progress is not None:
        runs.finish_run(world.db, progress.run_id, "crashed", error=error)
        outcome.run_id, outcome.video_id = progress.run_id, progress.video_id


def _fill(world: Resources, progress: runs.RunProgress, outcome: Outcome) -> None:
    outcome.video_id, outcome.run_id = progress.video_id, progress.run_id
    outcome.sha256 = progress.sha256 or outcome.sha256
    outcome.status = progress.status
    outcome.degraded = list(progress.degraded)
    for stage in progress.stages:
        if stage.status == "cached":
            outcome.cached_stages.append(stage.stage)
        elif stage.status == "done":
            outcome.computed_stages.append(stage.stage)
    outcome.counts = timeline.counts(world.db, progress.video_id).model_dump()
    outcome.exit_code = EXIT_CODES.get(progress.status, 1)
    if progress.error_code is not None:
        outcome.error = {
            "code": progress.error_code,
            "message": progress.error_message,
            "retryable": bool(progress.error_retryable),
        }
        if progress.error_code == "service_unavailable":
            outcome.exit_code = ServiceUnavailableError.exit_code


def _print(world: Resources, outcome: Outcome) -> None:
    if outcome.error is not None:
        tell(f"reelgraph: {outcome.source}: {outcome.error['message']}")
        return
    counted = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in outcome.counts.items()
    )
    say(f"{outcome.source}: {outcome.status} in {outcome.seconds:.1f} s")
    say(f"  {len(outcome.computed_stages)} stages computed, {len(outcome.cached_stages)} cached")
    say(f"  {counted}")
    for reason in outcome.degraded:
        say(f"  degraded: {reason}")
    if outcome.video_id is not None:
        for line in chain_lines(world.db, outcome.video_id):
            say(f"  causal: {line}")
