"""The few calls of Prefect's REST API that the command line makes.

Importing Prefect costs two seconds and 150 MB: too much for a command that only starts a run and
then watches Postgres.
"""

from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import UUID

import httpx

from engines.errors import ServiceUnavailableError, UsageError

PROCESS_VIDEO = "process-video/process-video"
"""Flow and deployment that every run of one video goes through."""
MINE_CORPUS = "mine-corpus/mine-corpus"
"""The same for a corpus."""


class FlowRunState(NamedTuple):
    """Where Prefect says a flow run stands; late under load, so never a source of truth."""

    type: str
    """``SCHEDULED``, ``PENDING``, ``RUNNING``, ``COMPLETED``, ``FAILED``, ``CRASHED`` ..."""
    message: str | None

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen any more."""
        return self.type in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class PrefectApi:
    """A client of one Prefect server."""

    def __init__(self, api_url: str) -> None:
        """Connect lazily to ``http://host:port/api``."""
        self._http = httpx.Client(base_url=api_url.rstrip("/"), timeout=20)

    def start(
        self,
        deployment: str,
        parameters: dict[str, Any],
        *,
        idempotency_key: str | None = None,
        delay_s: float = 0.0,
    ) -> UUID:
        """Schedule a run of ``flow/deployment``, now or a little later.

        Returns:
            Id of the flow run; the same one again for the same idempotency key.

        Raises:
            UsageError: no such deployment, or the parameters do not fit its schema.
            ServiceUnavailableError: Prefect does not answer.
        """
        found = self._call("GET", f"/deployments/name/{deployment}")
        body: dict[str, Any] = {"parameters": parameters}
        if idempotency_key:
            body["idempotency_key"] = idempotency_key
        if delay_s > 0:
            at = datetime.now(UTC) + timedelta(seconds=delay_s)
            body["state"] = {
                "type": "SCHEDULED",
                "state_details": {"scheduled_time": at.isoformat()},
            }
        run = self._call("POST", f"/deployments/{found['id']}/create_flow_run", body)
        return UUID(run["id"])

    def state(self, flow_run_id: UUID) -> FlowRunState:
        """Where a flow run stands."""
        run = self._call("GET", f"/flow_runs/{flow_run_id}")
        state = run.get("state") or {}
        return FlowRunState(type=state.get("type", "PENDING"), message=state.get("message"))

    def workers_online(self, pool: str) -> int:
        """How many workers of a pool have been heard of lately."""
        workers = self._call("POST", f"/work_pools/{pool}/workers/filter", {})
        return sum(worker.get("status") == "ONLINE" for worker in workers)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        try:
            response = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            msg = f"Prefect does not answer at {self._http.base_url}: {error}"
            raise ServiceUnavailableError(msg) from error
        if response.is_server_error:
            msg = f"Prefect answered {response.status_code} for {path}"
            raise ServiceUnavailableError(msg)
        if response.is_error:
            msg = f"Prefect refused {path}: {_detail(response)}"
            raise UsageError(msg)
        return response.json()

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _detail(response: httpx.Response) -> str:
    try:
        detail = response.json().get("detail", response.text)
    except ValueError:
        detail = response.text
    return " ".join(str(detail).split())[:300]
