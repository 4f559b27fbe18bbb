"""The embedded stack: every service that Reelgraph needs, on one machine, on loopback only."""

from deploy.local.records import ServiceStatus, StackStatus
from deploy.local.stack import down, status, up

__all__ = ["ServiceStatus", "StackStatus", "down", "status", "up"]
