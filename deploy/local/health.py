"""Looking at every service: is its process there, and does it do its work."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import httpx
import minio
import psycopg

from deploy.local.plan import SERVER_OF, Plan
from deploy.local.postgres import server_problem
from deploy.local.prefect_server import api_problem, worker_problem
from deploy.local.processes import alive
from deploy.local.records import ServiceRecord, ServiceStatus, StackFile, StackStatus
from deploy.local.seaweed import s3_client, s3_problem
from engines.errors import ServiceUnavailableError

Probe = Callable[[], str | None]
"""Returns why a service does not do its work, None when it does."""


def probes(plan: Plan) -> dict[str, Probe]:
    """One probe for each service that this machine serves or uses, by service name."""
    client = object_client(plan)
    found: dict[str, Probe] = {
        "postgres": lambda: _database_problem(plan),
        "objects": lambda: s3_problem(client),
        "prefect": lambda: api_problem(plan.api_url),
        "receiver": lambda: _receiver_problem(plan.receiver_url),
    }
    for pool in plan.pools:
        if pool.not_served is None:
            name = plan.worker_name(pool)
            found[f"worker-{pool.name}"] = partial(worker_problem, plan.api_url, pool.name, name)
    return found


def object_client(plan: Plan) -> minio.Minio:
    """A client for the plan's object store that gives up at once."""
    address = urlsplit(plan.s3_endpoint)
    access_key, secret_key = plan.s3_keys
    return s3_client(
        address.netloc,
        access_key,
        secret_key,
        secure=address.scheme == "https",
        region=plan.settings.s3_region,
    )


def examine(plan: Plan, stack: StackFile) -> StackStatus:
    """Ask every service at the same time."""
    asked = probes(plan)
    with ThreadPoolExecutor(max_workers=len(asked)) as threads:
        answers = {
            name: threads.submit(_status_of, name, probe, plan, stack.services.get(name))
            for name, probe in asked.items()
        }
        found = {name: answer.result() for name, answer in answers.items()}
    idle = tuple(
        ServiceStatus(
            name=f"worker-{pool.name}", state="not served", healthy=True, detail=pool.not_served
        )
        for pool in plan.pools
        if pool.not_served is not None
    )
    up = {name: status.healthy for name, status in found.items()}
    return StackStatus(
        healthy=all(up.values()),
        services=(*found.values(), *idle),
        ui_url=plan.ui_url if up["prefect"] else None,
        api_url=plan.api_url if up["prefect"] else None,
        s3_endpoint=plan.s3_endpoint if up["objects"] else None,
        dsn=plan.reader_url if up["postgres"] else None,
        receiver_url=plan.receiver_url if up["receiver"] else None,
        data_dir=plan.home,
        log_dir=plan.log_dir,
    )


def _status_of(name: str, probe: Probe, plan: Plan, record: ServiceRecord | None) -> ServiceStatus:
    external = name in SERVER_OF.values() and name not in plan.servers
    running = alive(record)
    if not external and not running:
        return ServiceStatus(
            name=name, state="stopped", healthy=False, detail="not running: `reelgraph up`"
        )
    try:
        problem = probe()
    except ServiceUnavailableError as error:
        problem = str(error)
    urls = {
        "postgres": _without_password(plan.database_url),
        "objects": plan.s3_endpoint,
        "prefect": plan.ui_url,
        "receiver": plan.receiver_url,
    }
    return ServiceStatus(
        name=name,
        state="external" if external else "running",
        healthy=problem is None,
        url=urls.get(name),
        pid=record.pid if record is not None and not external else None,
        detail=problem or "",
    )


def _database_problem(plan: Plan) -> str | None:
    if "database" not in plan.external:
        return server_problem(plan.port("postgres"), plan.secrets.postgres_password)
    try:
        with psycopg.connect(plan.database_url, connect_timeout=5):
            return None
    except psycopg.OperationalError as error:
        return str(error).strip().splitlines()[-1]


def _receiver_problem(url: str) -> str | None:
    try:
        answer = httpx.get(f"{url}/health", timeout=10, trust_env=False)
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    return None if answer.is_success else f"{url}/health answers {answer.status_code}"


def _without_password(url: str) -> str:
    address = urlsplit(url)
    host = f"{address.hostname}:{address.port}" if address.port else str(address.hostname)
    return f"{address.scheme}://{host}{address.path}"
