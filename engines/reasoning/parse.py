"""The first whole JSON object of a model's reply, taken by a real parser.

Fences and prose around it do not matter, nor back-ticks and braces inside its strings. What is
ambiguous is invalid and never guessed at: two objects, a key given twice, NaN, an array, null,
nothing at all. A stray comma before a closing bracket or a raw line end inside a string is
repaired, and the caller is told.
"""

import json
from dataclasses import dataclass

from pydantic import JsonValue


class InvalidReplyError(ValueError):
    """The reply holds no object, more than one, or one that cannot be read; says why."""


@dataclass(frozen=True)
class Parsed:
    """An object, and whether it needed light repair."""

    value: dict[str, JsonValue]
    repaired: bool

    def as_json(self) -> str:
        """The object alone, written anew."""
        return json.dumps(self.value)


def _no_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        msg = "a key is given twice"
        raise InvalidReplyError(msg)
    return dict(pairs)


def _no_constant(name: str) -> JsonValue:
    msg = f"{name} is not a JSON number"
    raise InvalidReplyError(msg)


_STRICT = json.JSONDecoder(object_pairs_hook=_no_twins, parse_constant=_no_constant)
_LENIENT = json.JSONDecoder(object_pairs_hook=_no_twins, parse_constant=_no_constant, strict=False)


def parse_object(reply: str) -> Parsed:
    """Find and read the one object in a reply.

    Args:
        reply: all that the model wrote, known to be whole (stop reason already checked).

    Raises:
        InvalidReplyError: no object, several, twin keys, an array around them, or broken JSON.
    """
    if _body(reply).startswith("["):
        msg = "an array where one object was asked for"
        raise InvalidReplyError(msg)
    found: Parsed | None = None
    position = reply.find("{")
    while position >= 0:
        parsed, end = _object_at(reply, position)
        if parsed is not None:
            if found is not None:
                msg = "two objects where one was asked for"
                raise InvalidReplyError(msg)
            found = parsed
        position = reply.find("{", end)
    if found is None:
        msg = "no JSON object"
        raise InvalidReplyError(msg)
    return found


def _body(reply: str) -> str:
    """The reply without a fence's first line."""
    text = reply.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].strip()
    return text


def _object_at(reply: str, start: int) -> tuple[Parsed | None, int]:
    """The object that begins at a brace, and where to look on; None for a brace in prose."""
    try:
        value, end = _STRICT.raw_decode(reply, start)
    except json.JSONDecodeError:
        return _repaired_at(reply, start)
    return Parsed(value, repaired=False), end


def _repaired_at(reply: str, start: int) -> tuple[Parsed | None, int]:
    is_json = reply[start + 1 :].lstrip()[:1] in {'"', "}"}
    end = _closing(reply, start)
    if not is_json:
        return None, start + 1
    if end is None:
        msg = "an object that does not close"
        raise InvalidReplyError(msg)
    try:
        value, _ = _LENIENT.raw_decode(_without_stray_commas(reply[start:end]))
    except json.JSONDecodeError as error:
        msg = f"not JSON at character {start + error.pos}: {error.msg}"
        raise InvalidReplyError(msg) from error
    return Parsed(value, repaired=True), end


def _closing(text: str, start: int) -> int | None:
    """One past the bracket that closes the one at ``start``; strings are skipped."""
    depth, in_string, escaped = 0, False, False
    for i in range(start, len(text)):
        c = text[i]
        if in_string:
            in_string, escaped = _in_string(c, escaped)
        elif c == '"':
            in_string = True
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return i + 1
    return None


def _in_string(c: str, escaped: bool) -> tuple[bool, bool]:
    """(still inside the string, next character is escaped) after one character of it."""
    if escaped:
        return True, False
    return c != '"', c == "\\"


def _without_stray_commas(text: str) -> str:
    """The text without commas that stand right before a closing bracket, strings untouched."""
    out: list[str] = []
    in_string, escaped = False, False
    for c in text:
        if in_string:
            in_string, escaped = _in_string(c, escaped)
        elif c == '"':
            in_string = True
        elif c in "}]":
            last = next((n for n in range(len(out) - 1, -1, -1) if not out[n].isspace()), None)
            if last is not None and out[last] == ",":
                del out[last]
        out.append(c)
    return "".join(out)
