"""The cache key: content plus recipe, made in one place, failing closed.

    key = sha256(input hashes, stage, code version, engine, model revision, parameters, prompts)

What cannot be hashed is an error: not a silent miss, and not a hit on the rest.
"""

import ast
import hashlib
import importlib.util
import json
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import Field, JsonValue

from engines.contracts.base import Contract
from engines.errors import CacheKeyError
from tasks.settings import get_settings

_PARSER = threading.Lock()
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Recipe(Contract):
    """Everything beside the input bytes that decides what a stage computes."""

    stage: str
    code_version: str
    engine: str
    model: str
    model_revision: str
    params: dict[str, JsonValue]
    prompts: dict[str, str] = Field(default_factory=dict)
    """Template name -> hash of template and answer schema."""


def cache_key(inputs: Mapping[str, str], recipe: Recipe) -> str:
    """Name of the result of ``recipe`` over ``inputs`` (input name -> SHA-256 of its bytes).

    Raises:
        CacheKeyError: an input is not a SHA-256, an ingredient is empty, or a parameter has no
            exact JSON form (NaN, infinity).
    """
    for name, sha256 in inputs.items():
        if not _SHA256.fullmatch(sha256):
            msg = f"input {name!r} of stage {recipe.stage!r} has no SHA-256: {sha256!r}"
            raise CacheKeyError(msg)
    if not inputs:
        msg = f"stage {recipe.stage!r} has no inputs to name its result by"
        raise CacheKeyError(msg)
    for field in ("stage", "code_version", "engine", "model_revision"):
        if not getattr(recipe, field):
            msg = f"stage {recipe.stage!r} has no {field}"
            raise CacheKeyError(msg)
    if any(not digest for digest in recipe.prompts.values()):
        msg = f"stage {recipe.stage!r} has a prompt without a hash"
        raise CacheKeyError(msg)
    try:
        text = json.dumps(
            {"inputs": dict(inputs), "recipe": recipe.model_dump()},
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
            ensure_ascii=True,
        )
    except (TypeError, ValueError) as error:
        msg = f"a parameter of stage {recipe.stage!r} has no exact JSON form: {error}"
        raise CacheKeyError(msg) from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@cache
def code_version(packages: tuple[str, ...]) -> str:
    """Hash of the code below ``packages`` (modules or packages), blind to comments and layout.

    A changed statement changes it, so a result of older code is never taken for a result of this
    one; nobody has to remember to raise a number.

    Raises:
        CacheKeyError: a package cannot be found as source.
    """
    digest = hashlib.sha256()
    for package in sorted(packages):
        for path in _sources(package):
            digest.update(f"{package}\0{path.name}\0{_tree_hash(path.read_bytes())}\0".encode())
    return digest.hexdigest()[:16]


def _tree_hash(source: bytes) -> str:
    """Hash of a module's syntax tree without docstrings, remembered on disk by its bytes.

    Parsing all of our code takes a second, as long as everything else that a run does before its
    first stage.
    """
    known = get_settings().home / "cache" / "code" / hashlib.sha256(source).hexdigest()
    with suppress(OSError):
        return known.read_text()
    # CPython 3.11 keeps the parser's recursion depth per process: two threads that parse at a
    # time get a SystemError.
    with _PARSER:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        _drop_docstring(node)
    found = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    with suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        temporary = known.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        temporary.write_text(found)
        temporary.replace(known)
    return found


def _sources(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        msg = f"no code called {package!r}"
        raise CacheKeyError(msg)
    if spec.submodule_search_locations:
        return sorted(
            path for root in spec.submodule_search_locations for path in Path(root).rglob("*.py")
        )
    if not spec.origin or not spec.origin.endswith(".py"):
        msg = f"the source of {package!r} is not there to hash"
        raise CacheKeyError(msg)
    return [Path(spec.origin)]


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            node.body = rest or [ast.Pass()]


def params_hash(params: Contract) -> str:
    """Hash of all parameters of a run, as ``reel.runs.recipe_hash`` shows it."""
    return hashlib.sha256(params.model_dump_json().encode()).hexdigest()
