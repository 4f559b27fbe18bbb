"""The classes that are recognised, as data: names, definitions for prompts, and sources."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from engines.contracts.base import Contract
from engines.errors import EngineError

OTHER: Final = "other"
"""Name of the class for everything that is none of the classes."""


BodyPart = Literal["shoulder", "elbow", "wrist", "hip", "knee", "ankle"]


class ActionClass(Contract):
    """One class."""

    name: str = Field(pattern=r"^[a-z_]+$")
    title: str
    definition: str
    """One sentence on what is seen; prompts quote it."""
    needs: tuple[BodyPart, ...] = ()
    """What must be seen, on one side of the body at least, before the class can be claimed."""
    hips: Literal["rise", "sink"] | None = None
    """What the hips must do over the knees from the beginning to the end, if anything."""
    waving_strokes: int | None = Field(default=None, ge=1)
    """So many strokes from side to side of a raised hand, in a row, prove the class."""
    sources: tuple[str, ...]
    """``SET:CLASS`` of the data sets that show it."""


class OtherClass(Contract):
    """What the network learns to turn down."""

    name: str
    definition: str
    sources: tuple[str, ...]


class Taxonomy(Contract):
    """All classes of a model."""

    version: int = Field(ge=1)
    joints: str
    classes: tuple[ActionClass, ...] = Field(min_length=1)
    mirrored: dict[str, str]
    """Classes that turn into another when left and right are exchanged."""
    other: OtherClass
    left_out: dict[str, str]
    """``SET:CLASS`` that is neither, and why."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [entry.name for entry in self.classes]
        sources = [s for entry in self.classes for s in entry.sources] + [*self.other.sources]
        for values in (names, [*sources, *self.left_out]):
            twice = {value for value in values if values.count(value) > 1}
            if twice:
                msg = f"named twice: {min(twice)}"
                raise ValueError(msg)
        unknown = {*self.mirrored, *self.mirrored.values()} - set(names)
        if unknown:
            msg = f"mirrored, but no class: {min(unknown)}"
            raise ValueError(msg)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Of all classes in the order of the network's outputs, ``other`` last."""
        return (*(entry.name for entry in self.classes), self.other.name)

    def class_of(self, source: str) -> int | None:
        """Output for ``SET:CLASS``; None where it is left out.

        Raises:
            EngineError: the taxonomy does not know it.
        """
        for row, entry in enumerate(self.classes):
            if source in entry.sources:
                return row
        if source in self.other.sources:
            return len(self.classes)
        if source in self.left_out:
            return None
        msg = f"the taxonomy does not say what to do with {source!r}"
        raise EngineError(msg)


@cache
def load_taxonomy(path: Path | None = None) -> Taxonomy:
    """Read a taxonomy; None takes the default one.

    Raises:
        EngineError: it does not hold what it must.
    """
    entry = files("engines.actions").joinpath("taxonomy.json") if path is None else path
    try:
        return Taxonomy.model_validate_json(entry.read_bytes())
    except (OSError, ValidationError) as error:
        msg = f"the taxonomy {entry.name} is not valid: {error}"
        raise EngineError(msg) from error
