"""Tells a bug in a user's code from a failure of the outside world, and names the code.

A bug (`BUGS`) in a reward term, a tool, an environment or a policy fails again in every episode, so
a run stops at the first one. A simulator, a server or a file can fail once; such a failure aborts
an episode, which is played again. The traceback shows which of the two it is: visenv calls the code
of a user only in a few files (`_CALLERS`).
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import NamedTuple

BUGS: tuple[type[Exception], ...] = (
    AttributeError,
    TypeError,
    NameError,
    ImportError,
    SyntaxError,
    LookupError,
    ArithmeticError,
    AssertionError,
    ValueError,
    NotImplementedError,
    RecursionError,
)
"""Exceptions that code raises because it is wrong, and not because something else failed."""

_NO_BUGS = (OSError, UnicodeError, json.JSONDecodeError)
"""Exceptions of unreadable replies and files, although they are also a `ValueError`."""

_CALLERS = frozenset(
    f"{name}.py"
    for name in (
        *("env", "wrappers", "late_events", "data/source", "tools/base"),
        *("rewards/terms", "rewards/wrapper", "scorers/backends/rules"),
        *("rollout/adapter", "rollout/advice", "rollout/episode"),
    )
)
"""The files of visenv that call code of users."""

_PASSES_ON = ("step", "reset")
"""Methods that wrappers pass on: a bug below them is not one of the wrapper."""

_ROOT = Path(__file__).parent
_LIBRARY = sysconfig.get_path("stdlib")


class _Call(NamedTuple):
    """Holds one call of a traceback: its frame, the line, and the file within visenv or ``""``."""

    frame: FrameType
    line: int
    own: str

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    @property
    def function(self) -> str:
        return self.frame.f_code.co_name


def bug_in(error: BaseException) -> str:
    """Return a sentence about the bug of a user's code that raised an error.

    Returns:
        The sentence, which names the object, its file and its line; ``""`` if the error is not a
        bug (`BUGS`), or no code of a user raised it.
    """
    if not isinstance(error, BUGS) or isinstance(error, _NO_BUGS):
        return ""
    calls = [
        _Call(frame, line, _within_visenv(frame.f_code.co_filename))
        for frame, line in walk_tb(error.__traceback__)
        if not _is_transparent(frame)
    ]
    entry = _entry(calls)
    if entry is None:
        return ""
    last = _last_in_folder(calls[entry:])
    problem = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"{_named(calls[:entry], calls[entry])} has a bug: {problem} ({last.file}, line "
        f"{last.line}, in {last.function})."
    )


def _entry(calls: Sequence[_Call]) -> int | None:
    """Return the place of the last call from visenv into a user's code, if that code failed."""
    for place in range(len(calls) - 1, 0, -1):
        if calls[place].own:
            if calls[place].own in _CALLERS and calls[place].function in _PASSES_ON:
                return None
        elif calls[place - 1].own in _CALLERS:
            return place
    return None


def _last_in_folder(calls: Sequence[_Call]) -> _Call:
    """Return the last call in the folder of the first one: not one in a library that it uses."""
    folder = Path(calls[0].file).parent
    return [call for call in calls if Path(call.file).is_relative_to(folder)][-1]


def _named(outer: Sequence[_Call], entry: _Call) -> str:
    """Return the name of the object to which the code belongs, as the start of a sentence."""
    caller = outer[-1].frame.f_locals
    match outer[-1].own:
        case "rewards/terms.py":
            terms = [call.frame.f_locals.get("term") for call in outer]
            name = next((term.name for term in reversed(terms) if hasattr(term, "name")), None)
            if name is not None:
                return f"The reward term {name!r}"
        case "tools/base.py":
            tool = caller.get("tool") or caller.get("self")
            return f"The tool {getattr(tool, 'name', type(tool).__name__)!r}"
        case "rollout/episode.py":
            return f"The policy {type(caller.get('policy')).__name__}"
        case "data/source.py":
            return f"The data source {type(caller.get('source')).__name__}"
    owner = entry.frame.f_locals.get("self")
    if owner is None:
        return f"The function {entry.function}"
    kind = "environment" if hasattr(owner, "reset") and hasattr(owner, "step") else "class"
    return f"The {kind} {type(owner).__name__}"


def _within_visenv(file: str) -> str:
    path = Path(file)
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else ""


def _is_transparent(frame: FrameType) -> bool:
    """Return whether a frame only passes calls on: the standard library, and Gymnasium."""
    file = frame.f_code.co_filename
    module = str(frame.f_globals.get("__name__", ""))
    if module.partition(".")[0] == "gymnasium" or file.startswith("<"):
        return True
    return file.startswith(_LIBRARY) and "site-packages" not in file
