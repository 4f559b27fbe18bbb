"""The embedded Prefect server, its work pools, and a worker for each that can be served."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from deploy.local.processes import Service, python_environment
from engines.errors import ServiceUnavailableError
from tasks.settings import Settings

HEARTBEAT_S = 30
JOB_TEMPLATE = Path(__file__).with_name("pool_template.json")


@dataclass(frozen=True)
class Pool:
    """A work pool and whether this machine has what its flows need."""

    name: str
    concurrency_limit: int | None
    not_served: str | None = None
    """Why no worker is started here; None when one is."""


def pools_of(settings: Settings, *, memory_bytes: int, cores: int) -> tuple[Pool, ...]:
    """The work pools, with limits for this machine.

    Args:
        settings: a language model server named there makes the pool ``llm`` served.
        memory_bytes: of the machine; a flow process takes up to 2.5 GB.
        cores: processors of the machine.
    """
    flows_at_a_time = max(1, min(cores, memory_bytes // (3 * 2**30)))
    no_gpu = None if any(Path("/dev").glob("nvidia[0-9]*")) else "no NVIDIA device"
    no_model = None if settings.llm_base_url else "REELGRAPH_LLM_BASE_URL is not set"
    return (
        Pool("cpu", flows_at_a_time),
        Pool("gpu", 1, no_gpu),
        Pool("llm", None, no_model),
    )


def client_environment(home: Path, service: str, api_url: str) -> dict[str, str]:
    """Environment of a process that talks to the Prefect API: workers, registration."""
    prefect_home = home / "prefect"
    return python_environment(
        home,
        service,
        PREFECT_HOME=str(prefect_home),
        PREFECT_PROFILES_PATH=str(prefect_home / "profiles.toml"),
        PREFECT_API_URL=api_url,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="false",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        DO_NOT_TRACK="1",
        # With these a flow process that dies together with its worker is still noticed.
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY=str(HEARTBEAT_S),
        PREFECT_WORKER_QUERY_SECONDS="1",
    )


def server_service(home: Path, port: int, database_url: str) -> Service:
    """How to start the API, its background services and the UI in one process.

    Args:
        home: the stack's directory.
        port: of 127.0.0.1.
        database_url: SQLAlchemy address of Prefect's own database.
    """
    api_url = f"http://127.0.0.1:{port}/api"
    environment = client_environment(home, "prefect", api_url) | {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": database_url,
        "PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE": "5",
        "PREFECT_SERVER_DATABASE_SQLALCHEMY_MAX_OVERFLOW": "15",
        "PREFECT_SERVER_UI_ENABLED": "true",
        "PREFECT_SERVER_UI_API_URL": api_url,
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_UI_URL": f"http://127.0.0.1:{port}",
    }
    return Service(
        name="prefect",
        command=(
            sys.executable,
            "-m",
            "prefect",
            "server",
            "start",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
        ),
        environment=environment,
        cwd=home / "prefect",
        ready=lambda: api_problem(api_url),
        ready_within_s=300.0,
        url=f"http://127.0.0.1:{port}",
    )


def worker_service(
    home: Path, pool: Pool, api_url: str, name: str, environment: Mapping[str, str]
) -> Service:
    """How to start a worker that runs the flows of one pool as processes on this machine.

    Args:
        home: the stack's directory.
        pool: the work pool.
        api_url: of the Prefect API.
        name: under which the worker reports.
        environment: more variables for it and for the flows that it runs.
    """
    service = f"worker-{pool.name}"
    since = datetime.now(UTC)
    return Service(
        name=service,
        command=(
            sys.executable,
            "-m",
            "prefect",
            "worker",
            "start",
            "--pool",
            pool.name,
            "--name",
            name,
            "--type",
            "process",
            "--no-create-pool-if-not-found",
            "--install-policy",
            "never",
        ),
        environment=client_environment(home, service, api_url) | dict(environment),
        cwd=home / "prefect",
        ready=lambda: worker_problem(api_url, pool.name, name),
        # An earlier worker of this name counts as online for a while after its end.
        started=lambda: worker_problem(api_url, pool.name, name, since),
        ready_within_s=240.0,
    )


def api_problem(api_url: str) -> str | None:
    """Why the Prefect API does not answer; None when it does."""
    try:
        answer = httpx.get(f"{api_url}/health", timeout=10, trust_env=False)
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    return None if answer.is_success else f"{api_url}/health answers {answer.status_code}"


def job_template() -> dict[str, Any]:
    """How a pool of this machine starts a flow run: in one Python process.

    Without a command of its own the worker starts two, the first only to look for the code,
    which doubles the time to the first task and the memory of a run.
    """
    template: dict[str, Any] = json.loads(JOB_TEMPLATE.read_bytes())
    command = shlex.join([sys.executable, "-m", "prefect.engine"])
    template["variables"]["properties"]["command"]["default"] = command
    return template


def ensure_pools(api_url: str, pools: tuple[Pool, ...], template: dict[str, Any] | None) -> None:
    """Create missing work pools and bring the others up to date.

    Args:
        api_url: of the Prefect API.
        pools: names and limits.
        template: how a flow run is started; None to leave that to the workers, which may be
            on other machines.

    Raises:
        ServiceUnavailableError: the API refuses or does not answer.
    """
    try:
        with httpx.Client(base_url=api_url, timeout=10, trust_env=False) as client:
            for pool in pools:
                wanted: dict[str, Any] = {"concurrency_limit": pool.concurrency_limit}
                if template is not None:
                    wanted["base_job_template"] = template
                known = client.get(f"/work_pools/{pool.name}")
                if known.status_code == httpx.codes.NOT_FOUND:
                    body = {"name": pool.name, "type": "process", **wanted}
                    client.post("/work_pools/", json=body).raise_for_status()
                    continue
                found = known.raise_for_status().json()
                if any(found[name] != value for name, value in wanted.items()):
                    client.patch(f"/work_pools/{pool.name}", json=wanted).raise_for_status()
    except httpx.HTTPError as error:
        msg = f"Prefect at {api_url} does not take work pools: {error}"
        raise ServiceUnavailableError(msg) from error


def worker_problem(api_url: str, pool: str, name: str, since: datetime | None = None) -> str | None:
    """Why a worker does not serve its pool; None when the server heard of it lately.

    Args:
        api_url: of the Prefect API.
        pool: name of the work pool.
        name: name of the worker.
        since: count only what was heard after this moment.
    """
    try:
        with httpx.Client(base_url=api_url, timeout=10, trust_env=False) as client:
            answer = client.post(f"/work_pools/{pool}/workers/filter", json={})
            workers = answer.raise_for_status().json()
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    for worker in workers:
        heard = datetime.fromisoformat(worker["last_heartbeat_time"])
        if worker["name"] != name:
            continue
        if worker["status"] == "ONLINE" and (since is None or heard > since):
            return None
    return f"worker {name} has not reported to pool {pool}"
