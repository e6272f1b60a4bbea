"""Reads a tool call written in JSON, ``{"name": …, "arguments": {…}}``, and describes its errors.

Every error is a `Problem` with the expected and the found text, because a policy cannot repair its
call without such a message.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from pydantic_core import from_json

from visenv.grammar.base import Problem, ToolCall
from visenv.tools.base import shown

LONGEST_CALL = 65_536
"""Maximum number of characters of one call."""

_FORM = 'A call is one JSON object, {"name": "<tool name>", "arguments": {…}}'
_KEYS = ("name", "arguments")
_EXCERPT = 24
_PLACE = re.compile(r"(.*) at line (\d+) column (\d+)", re.DOTALL)


class _FoundError(Exception):
    """Carries a problem out of the JSON reader."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def read_call(body: str) -> ToolCall | Problem:
    """Read the text between the tags of a call, in time linear in its length; never raise.

    Problem codes: ``too_long``, ``bad_json``, ``too_deep``, ``bad_character``, ``repeated_key``,
    ``not_finite``, ``not_an_object``, ``missing_key``, ``extra_key``, ``bad_name``,
    ``bad_arguments``.
    """
    if len(body) > LONGEST_CALL:
        message = f"Your call is {len(body)} characters long; at most {LONGEST_CALL} are read."
        return _problem("too_long", message)
    try:
        call = _read_json(body)
    except _FoundError as found:
        return found.problem
    return _unfit(call) or ToolCall(call["name"], call["arguments"])


def read_published_call(body: str) -> ToolCall | Problem | None:
    """Read a call as ARM-Thinker's public code does; return None if that code drops the call.

    Further keys are ignored, the last of repeated keys counts, and NaN is a number. Arguments that
    are not an object reach the tool in that code, and fail there.
    """
    try:
        call = from_json(body)
    except (ValueError, TypeError):
        return None
    if not (isinstance(call, dict) and isinstance(call.get("name"), str) and "arguments" in call):
        return None
    return _unfit_arguments(call["arguments"]) or ToolCall(call["name"], call["arguments"])


def _read_json(body: str) -> Any:
    """Return the JSON value.

    The text is read twice: pydantic's reader rejects deep nesting before Python's recursive reader
    is called, and Python's reader reports repeated keys and numbers that are not finite.
    """
    try:
        from_json(body)
    except TypeError:
        message = "Your call holds half of a surrogate pair, which is no character."
        raise _FoundError(_problem("bad_character", message)) from None
    except ValueError as error:
        raise _FoundError(_broken(body, str(error))) from None
    return json.loads(
        body,
        object_pairs_hook=_without_repeats,
        parse_constant=_refuse_number,
        parse_float=_finite,
    )


def _broken(body: str, complaint: str) -> Problem:
    """Return the place of a JSON error by quoting the text there: column numbers do not help."""
    if complaint.startswith("recursion limit"):
        message = f"The JSON of your call is nested too deeply. {_FORM}, on few levels."
        return _problem("too_deep", message)
    place = _PLACE.fullmatch(complaint)
    if not body.strip() or place is None:
        return _problem("bad_json", f"There is no JSON in your call. {_FORM}.")
    what, line, column = place[1], int(place[2]), int(place[3])
    lines = body.encode().split(b"\n")  # the column of the reader counts bytes
    read = b"\n".join([*lines[: line - 1], lines[line - 1][:column]])
    excerpt = shown(read.decode(errors="ignore")[-_EXCERPT:])
    message = f"The JSON of your call breaks at the end of {excerpt}: {what}. {_FORM}."
    return _problem("bad_json", message)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            message = f"The key {shown(key)} stands twice in your call; write it once."
            raise _FoundError(_problem("repeated_key", message))
        made[key] = value
    return made


def _finite(written: str) -> float:
    number = float(written)
    return number if abs(number) < float("inf") else _refuse_number(written)


def _refuse_number(written: str) -> NoReturn:
    message = f"{shown(written)} is not a finite number; write one."
    raise _FoundError(_problem("not_finite", message))


def _unfit(call: Any) -> Problem | None:
    """Return the reason why a JSON value is not a call, or None if it is one."""
    if not isinstance(call, dict):
        return _problem("not_an_object", f"{_FORM}; you wrote {shown(call)}.")
    missing = [key for key in _KEYS if key not in call]
    if missing:
        there = ", ".join(shown(key) for key in list(call)[:4]) or "none"
        message = f"The key {shown(missing[0])} is missing; there are: {there}. {_FORM}."
        return _problem("missing_key", message)
    extra = next((key for key in call if key not in _KEYS), None)
    if extra is not None:
        message = f"The key {shown(extra)} does not belong in a call. {_FORM}."
        return _problem("extra_key", message)
    if not isinstance(call["name"], str) or not call["name"]:
        message = f'"name" must be the name of a tool, got {shown(call["name"])}.'
        return _problem("bad_name", message)
    return _unfit_arguments(call["arguments"])


def _unfit_arguments(arguments: Any) -> Problem | None:
    if isinstance(arguments, dict):
        return None
    message = (
        f'"arguments" must be a JSON object, {{"<argument>": <value>}}, got {shown(arguments)}.'
    )
    return _problem("bad_arguments", message)


def _problem(code: str, message: str) -> Problem:
    return Problem(code, message, in_call=True)
