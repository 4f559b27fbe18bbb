"""What would compute, told without loading it: pure code, so its library is its model."""

from importlib.metadata import version

from engines.runtime.manifest import EngineDescription


def describe_timeline() -> EngineDescription:
    """The fusing of facts into a timeline."""
    return _described("timeline")


def describe_miner() -> EngineDescription:
    """The causal miner."""
    return _described("miner")


def _described(name: str) -> EngineDescription:
    return EngineDescription(
        engine=f"reelgraph.causal.{name}",
        model="none",
        model_revision=f"numpy {version('numpy')} scipy {version('scipy')}",
        device="cpu",
        threads=1,
    )
