"""Bringing every service of a plan to work, side by side where nothing depends on it."""

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil

from deploy.local.health import Probe, object_client, probes
from deploy.local.plan import Plan
from deploy.local.postgres import (
    clear_data_directory,
    ensure_databases,
    make_cluster,
    postgres_service,
    prepare_cluster,
)
from deploy.local.prefect_server import (
    Pool,
    client_environment,
    ensure_pools,
    job_template,
    server_service,
    worker_service,
)
from deploy.local.processes import (
    Service,
    alive,
    end_all,
    last_words,
    marked,
    python_environment,
    spawn,
    stop,
    wait_ready,
)
from deploy.local.records import Report, ServiceRecord, StackFile, load_stack, save_stack
from deploy.local.seaweed import PORTS as OBJECT_PORTS
from deploy.local.seaweed import Webhook, ensure_buckets, seaweed_service
from engines.errors import ServiceUnavailableError
from tasks.settings import CHECKOUT

MAX_LOG_BYTES = 16 * 2**20
REGISTRATION_LIMIT_S = 240.0
PATIENCE_S = 30.0
"""A service that runs and does not answer for so long is started anew."""


class Starter:
    """One ``up``: what it has found and what it has started so far."""

    def __init__(self, plan: Plan, report: Report) -> None:
        self._plan = plan
        self._report = report
        self._probes: dict[str, Probe] = probes(plan)
        self._stack: StackFile = load_stack(plan.home)
        self._lock = threading.Lock()

    def run(self) -> None:
        """Start everything.

        Raises:
            ServiceUnavailableError: the first service that does not come up; what works by then
                keeps running, so that the next ``up`` has less to do.
        """
        plan = self._plan
        for name in ("logs", "prefect", "s3"):
            (plan.home / name).mkdir(mode=0o700, exist_ok=True)
        self._stop_unwanted()
        self._update(settings=plan.stored_settings())
        registration = self._load_registration()
        try:
            with ThreadPoolExecutor() as threads:
                objects = threads.submit(self._objects)
                database = threads.submit(self._database)
                migration = threads.submit(self._after, database, self._migrate)
                receiver = threads.submit(self._after, migration, self._receiver)
                prefect = threads.submit(self._after, database, self._prefect)
                workers = [
                    threads.submit(self._after, prefect, partial(self._worker, pool))
                    for pool in plan.pools
                    if pool.not_served is None
                ]
                first = [objects, database, migration, prefect, receiver, *workers]
                if registration is not None:
                    register = partial(self._register, registration)
                    first.append(threads.submit(self._after, prefect, register))
                for future in first:
                    future.result()
        finally:
            if registration is not None:
                with registration:
                    registration.kill()

    def _after(self, first: Future[None], then: Callable[[], None]) -> None:
        """Do nothing when ``first`` failed: its own error is the one to show."""
        if first.exception() is None:
            then()

    def _database(self) -> None:
        plan = self._plan
        if "database" in plan.external:
            self._require("postgres")
            return
        cluster = prepare_cluster(plan.home)
        running = alive(self._stack.services.get("postgres"))
        if not cluster.made:
            self._report("postgres: making the data directory")
            make_cluster(cluster, plan.secrets.postgres_password)
        elif not running:
            clear_data_directory(cluster.data)
        if self._ensure(postgres_service(cluster, plan.port("postgres"), plan.secrets)):
            ensure_databases(plan.port("postgres"), plan.secrets)

    def _migrate(self) -> None:
        from tasks.store.migrate import upgrade

        upgrade(self._plan.database_url)
        self._report("postgres: schema up to date")

    def _objects(self) -> None:
        plan = self._plan
        if "objects" in plan.external:
            self._require("objects")
        else:
            webhook = Webhook(
                endpoint=f"{plan.receiver_url}/notify/seaweedfs",
                token=plan.secrets.receiver_token,
                bucket=plan.settings.videos_bucket,
            )
            ports = {name: plan.port(name) for name in OBJECT_PORTS}
            ready = self._probes["objects"]
            self._ensure(seaweed_service(plan.home, ports, plan.secrets, webhook, ready))
        buckets = plan.settings.videos_bucket, plan.settings.artifacts_bucket
        ensure_buckets(object_client(plan), buckets)

    def _prefect(self) -> None:
        plan = self._plan
        if "prefect" in plan.external:
            self._require("prefect")
        else:
            self._ensure(server_service(plan.home, plan.port("prefect"), plan.prefect_database_url))
        template = None if "prefect" in plan.external else job_template()
        ensure_pools(plan.api_url, plan.pools, template)

    def _receiver(self) -> None:
        plan = self._plan
        environment = python_environment(plan.home, "receiver", **plan.child_environment())
        self._ensure(
            Service(
                name="receiver",
                command=(sys.executable, "-m", "flows.receiver"),
                environment=environment | {"PREFECT_API_URL": plan.api_url},
                cwd=plan.home,
                ready=self._probes["receiver"],
                url=plan.receiver_url,
            )
        )

    def _worker(self, pool: Pool) -> None:
        plan = self._plan
        name = plan.worker_name(pool)
        self._ensure(worker_service(plan.home, pool, plan.api_url, name, plan.child_environment()))

    def _load_registration(self) -> "subprocess.Popen[bytes] | None":
        """Load what registers the deployments while Prefect starts; None when nothing changed.

        It is a process of its own, free of the user's Prefect settings, and waits for a line.
        """
        plan = self._plan
        known = "prefect" in plan.external or (plan.home / "pg" / "PG_VERSION").exists()
        if known and self._stack.registered == _sources_fingerprint(plan.api_url):
            return None
        code = (
            "import sys; from flows.deployments import register; "
            "sys.stdin.readline() and register(sys.argv[1])"
        )
        with (plan.log_dir / "register.log").open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
                [sys.executable, "-c", code, plan.api_url],
                env=client_environment(plan.home, "register", plan.api_url),
                cwd=plan.home / "prefect",
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _register(self, registration: "subprocess.Popen[bytes]") -> None:
        """Create or update the deployments.

        Raises:
            ServiceUnavailableError: it failed, or took longer than its limit.
        """
        plan = self._plan
        try:
            registration.communicate(b"go\n", timeout=REGISTRATION_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            msg = f"the deployments are not registered after {REGISTRATION_LIMIT_S:g} s"
            raise ServiceUnavailableError(msg) from error
        if registration.returncode != 0:
            words = last_words(plan.log_dir / "register.log")
            msg = f"the deployments cannot be registered: {words}"
            raise ServiceUnavailableError(msg)
        self._update(registered=_sources_fingerprint(plan.api_url))
        self._report("deployments: registered")

    def _ensure(self, service: Service) -> bool:
        """Start a service unless it runs as wanted; returns whether it was started."""
        name = service.name
        record = self._stack.services.get(name)
        if record is not None and alive(record):
            if record.fingerprint == service.fingerprint and _works(service, record):
                self._report(f"{name}: running")
                return False
            self._report(f"{name}: restarting")
            stop({name: record})
        strangers = [p for p in marked(self._plan.home, name) if _same_program(p, service)]
        end_all(strangers, within_s=10.0)
        log = self._plan.log_dir / f"{name}.log"
        _rotate(log)
        log_start = log.stat().st_size if log.exists() else 0
        begun = time.monotonic()
        record = spawn(service, log)
        self._record(name, record)
        wait_ready(service, record, log, log_start)
        self._report(f"{name}: started in {time.monotonic() - begun:.1f} s")
        return True

    def _require(self, name: str) -> None:
        problem = self._probes[name]()
        if problem is not None:
            msg = f"{name}: the server named by the settings does not work: {problem}"
            raise ServiceUnavailableError(msg)
        self._report(f"{name}: external, reachable")

    def _stop_unwanted(self) -> None:
        """End what an earlier ``up`` started and this plan does not have."""
        wanted = {*self._plan.servers, "receiver"}
        wanted |= {f"worker-{p.name}" for p in self._plan.pools if p.not_served is None}
        unwanted = {n: r for n, r in self._stack.services.items() if n not in wanted}
        for name in unwanted:
            self._report(f"{name}: stopping, not wanted any more")
        stop(unwanted)
        kept = {n: r for n, r in self._stack.services.items() if n in wanted}
        self._update(services=kept)

    def _record(self, name: str, record: ServiceRecord) -> None:
        with self._lock:
            services = {**self._stack.services, name: record}
            self._stack = self._stack.model_copy(update={"services": services})
            save_stack(self._plan.home, self._stack)

    def _update(self, **changes: object) -> None:
        with self._lock:
            self._stack = self._stack.model_copy(update=changes)
            save_stack(self._plan.home, self._stack)


def _works(service: Service, record: ServiceRecord) -> bool:
    """Whether a running service does its work; on a busy machine an answer may take a while."""
    deadline = time.monotonic() + PATIENCE_S
    while service.ready() is not None:
        if not alive(record) or time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


def _same_program(process: psutil.Process, service: Service) -> bool:
    """Whether a marked process is the service itself, not something that it started."""
    try:
        return bool(process.cmdline()[:3] == list(service.command[:3]))
    except psutil.Error:
        return False


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def _sources_fingerprint(api_url: str) -> str:
    """Changes whenever the deployments, or the parameters of their flows, could have changed."""
    digest = hashlib.sha256(api_url.encode())
    folders = (CHECKOUT / "flows", CHECKOUT / "engines" / "contracts")
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        digest.update(path.relative_to(CHECKOUT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
