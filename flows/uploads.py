"""From a store's notification to a flow run, by way of the inbox.

The row in the inbox is written first and is the truth. The event only makes things fast: when it
is lost (Prefect down, its trigger restarting), ``reconcile`` starts the run by the row, and when
the notification itself is lost, ``sweep`` finds the object by listing the bucket.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
from sqlalchemy import Engine

from engines.errors import ServiceUnavailableError, UsageError
from tasks.objects.client import ObjectStore
from tasks.objects.notifications import (
    ObjectNotification,
    Parsed,
    no_run_reason,
    unwatched_reason,
)
from tasks.resources import Resources
from tasks.settings import Settings
from tasks.store import inbox
from tasks.store.inbox import InboxRow

EVENT_CREATED = "s3.object.created"
DEPLOYMENT = "on-upload/on-upload"
OVERDUE_S = 60.0
"""A queued row older than this without a run has lost its event; trigger to run takes 10 s."""
STUCK_S = 120.0
"""A running row older than this is compared with Prefect: its process may have died."""
MAX_ATTEMPTS = 3
"""Runs started for one row, after the first: what kills its process each time is given up."""
ALIVE = ("SCHEDULED", "PENDING", "RUNNING", "CANCELLING", "PAUSED")
PAGE = 200

logger = logging.getLogger("reelgraph.receiver")


class Uploads:
    """What the receiver does with notifications."""

    def __init__(
        self, db: Engine, objects: ObjectStore, settings: Settings, prefect: httpx.Client
    ) -> None:
        """Keep the connections; nothing is asked yet."""
        self._db = db
        self._objects = objects
        self._settings = settings
        self._prefect = prefect

    @classmethod
    def of(cls, resources: Resources) -> "Uploads":
        """With the resources of this process.

        Raises:
            ServiceUnavailableError: the settings name no Prefect API.
        """
        api_url = resources.settings.prefect_api_url
        if api_url is None:
            msg = "no Prefect API: start the stack with `reelgraph up` or set PREFECT_API_URL"
            raise ServiceUnavailableError(msg)
        prefect = httpx.Client(base_url=api_url, timeout=10)
        return cls(resources.db, resources.objects, resources.settings, prefect)

    def receive(self, parsed: Parsed) -> list[str]:
        """Write what was announced to the inbox, then tell Prefect.

        Returns:
            One line for each notification: queued, duplicate, or ignored and why.

        Raises:
            ReelgraphError: the inbox cannot be written; nothing was acknowledged.
        """
        for reason in parsed.skipped:
            logger.debug("skipped %s", reason)
        return [self._receive_one(notification) for notification in parsed.notifications]

    def reconcile(self) -> int:
        """Start a run for every row that waits without one; returns how many were started.

        The run of a row may itself wait for a free slot, for hours in a burst; so Prefect is
        asked first which rows have one. An idempotency key makes two passes start one run.

        Raises:
            ReelgraphError: the database or Prefect is not there.
        """
        overdue = [row for row in inbox.pending(self._db, OVERDUE_S) if self._wants_run(row)]
        stuck = inbox.stuck(self._db, STUCK_S)
        if not overdue and not stuck:
            return 0
        deployment = self._call("GET", f"/deployments/name/{DEPLOYMENT}")["id"]
        served = self._rows_with_runs(deployment, ALIVE)
        cancelled = self._rows_with_runs(deployment, ("CANCELLED",)) if stuck else set()
        for row in stuck:
            if row.inbox_id in served:
                continue
            if row.inbox_id in cancelled:
                inbox.mark(self._db, row.inbox_id, "ignored", reason="cancelled")
                continue
            logger.warning("%d: its run died, queued again", row.inbox_id)
            inbox.mark(self._db, row.inbox_id, "queued", reason="its run died")
            overdue.append(row)
        return sum(self._start(row, deployment) for row in overdue if row.inbox_id not in served)

    def sweep(self) -> int:
        """Put objects into the inbox that no notification named; returns how many.

        Raises:
            ReelgraphError: the database or the store is not there.
        """
        bucket, prefix = self._settings.videos_bucket, self._settings.watched_prefix
        known = inbox.known_keys(self._db, bucket, prefix)
        settled = datetime.now(UTC) - timedelta(seconds=OVERDUE_S)
        found = 0
        for version in self._objects.list(bucket, prefix):
            # What was put a moment ago may have its notification on the way.
            fresh = version.modified_at is not None and version.modified_at > settled
            if fresh or (version.ref.key, version.etag) in known:
                continue
            notification = ObjectNotification(
                bucket=bucket,
                key=version.ref.key,
                etag=version.etag,
                size_bytes=version.size_bytes,
                event="created",
            )
            found += self._receive_one(notification) == "queued"
        return found

    def _receive_one(self, notification: ObjectNotification) -> str:
        reason = unwatched_reason(
            notification,
            videos_bucket=self._settings.videos_bucket,
            watched_prefix=self._settings.watched_prefix,
        )
        name = f"{notification.bucket}/{notification.key}"
        if reason is not None:
            logger.info("%s: ignored, %s", name, reason)
            return f"ignored: {reason}"
        row = inbox.receive(self._db, notification)
        if row is None:
            logger.info("%s: announced before", name)
            return "duplicate"
        if not self._wants_run(row):
            return f"ignored: {no_run_reason(row.event, row.size_bytes)}"
        logger.info("%s: queued as %d", name, row.inbox_id)
        self._emit(row)
        return "queued"

    def _wants_run(self, row: InboxRow) -> bool:
        """Whether a queued row is for a run; one that is not is closed with its reason."""
        reason = no_run_reason(row.event, row.size_bytes)
        if reason is None:
            return True
        logger.info("%s/%s: ignored, %s", row.bucket, row.key, reason)
        inbox.mark(self._db, row.inbox_id, "ignored", reason=reason)
        return False

    def _emit(self, row: InboxRow) -> None:
        """Tell Prefect; when that fails the row stays queued and ``reconcile`` finds it."""
        identity = f"s3://{row.bucket}/{row.key}#{row.etag}#{row.version_id or ''}"
        event = {
            "id": str(uuid5(NAMESPACE_URL, identity)),
            "occurred": datetime.now(UTC).isoformat(),
            "event": EVENT_CREATED,
            "resource": {"prefect.resource.id": f"s3.bucket.{row.bucket}.object"},
            "payload": _parameters(row),
        }
        try:
            self._call("POST", "/events", [event])
        except (ServiceUnavailableError, UsageError) as error:
            logger.warning("%d: no event, it will be reconciled: %s", row.inbox_id, error)

    def _start(self, row: InboxRow, deployment_id: str) -> bool:
        state = ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            body = {
                "parameters": _parameters(row),
                "idempotency_key": f"inbox-{row.inbox_id}-{attempt}",
            }
            run = self._call("POST", f"/deployments/{deployment_id}/create_flow_run", body)
            state = run["state"]["type"]
            if state in ALIVE:
                logger.info("%d: reconciled as flow run %s", row.inbox_id, run["id"])
                return True
        reason = f"{MAX_ATTEMPTS} runs ended without finishing it, the last one {state.lower()}"
        logger.warning("%d: given up, %s", row.inbox_id, reason)
        inbox.mark(self._db, row.inbox_id, "dead", reason=reason)
        return False

    def _rows_with_runs(self, deployment_id: str, states: Sequence[str]) -> set[int]:
        """Inbox ids in the parameters of flow runs in one of the states."""
        found: set[int] = set()
        body: dict[str, Any] = {
            "deployments": {"id": {"any_": [deployment_id]}},
            "flow_runs": {"state": {"type": {"any_": list(states)}}},
            "limit": PAGE,
            "offset": 0,
        }
        while True:
            page = self._call("POST", "/flow_runs/filter", body)
            found |= {run["parameters"].get("inbox_id") for run in page}
            if len(page) < PAGE:
                return found
            body["offset"] += PAGE

    def _call(self, method: str, path: str, body: object = None) -> Any:
        try:
            answer = self._prefect.request(method, path, json=body)
        except httpx.HTTPError as error:
            msg = f"Prefect does not answer at {self._prefect.base_url}: {error}"
            raise ServiceUnavailableError(msg) from error
        if answer.is_server_error:
            msg = f"Prefect answers {answer.status_code} for {path}"
            raise ServiceUnavailableError(msg)
        if answer.is_error:
            msg = f"Prefect refuses {path}: {answer.text[:300]}"
            raise UsageError(msg)
        return answer.json() if answer.content else None


def _parameters(row: InboxRow) -> dict[str, Any]:
    """Parameters of the flow, and payload of the event that starts it."""
    return {
        "bucket": row.bucket,
        "key": row.key,
        "etag": row.etag,
        "version_id": row.version_id,
        "inbox_id": row.inbox_id,
    }
