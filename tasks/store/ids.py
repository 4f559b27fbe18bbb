"""How things get their uuids: from what they are, so that the same thing has the same id."""

from uuid import UUID, uuid5

NAMESPACE = UUID("5d1f7a0e-3c0b-5e0a-9d7c-2f6a4b8c9e11")
"""Root of every name-based id; changing it would rename every asset and fact."""


def video_id_of(bucket: str, key: str) -> UUID:
    """Id of the asset at ``bucket`` and ``key``; the same bytes elsewhere are another asset."""
    return uuid5(NAMESPACE, f"{bucket}\0{key}")


def fact_id_of(video_id: UUID, cache_key: str, kind: str, ordinal: int) -> UUID:
    """Id of a fact: stable as long as content and recipe of its stage are.

    Args:
        video_id: the asset the fact is about.
        cache_key: names the result of the stage that made the fact.
        kind: a FactKind, or the store's own ``coverage``, ``embedding`` and ``abstention``.
        ordinal: index in the document.
    """
    return uuid5(video_id, f"{cache_key}/{kind}:{ordinal}")
