"""Reads chunks of actions in JSON, as vision-language-action policies write numbers.

A turn is one JSON object with the arguments of one call of the tool `TOOL`::

    {"actions": [[127, 140, 90, 127, 127, 127, 0], [127, 140, 90, 127, 127, 127, 0]]}

A thought inside ``<think></think>`` may precede it, and one Markdown fence may enclose it. There is
no answer: an episode ends when the goal is reached or a limit is exceeded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from visenv.grammar.base import ParsedTurn, Problem, ToolCall, without_fence
from visenv.tools.base import shown
from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

TOOL = "act"
"""Name of the tool that every turn calls."""

LONGEST_TURN = 1 << 16
"""Maximum number of characters of a turn, by default."""

_OPENING, _CLOSING = "<think>", "</think>"


class ActionChunkGrammar:
    """Reads one JSON object per turn, after an optional thought.

    Args:
        form: The format of a turn for error messages, for example ``{"actions": [[…], …]}``.
        longest_turn: Maximum number of characters of a turn.
    """

    stop: tuple[str, ...] = ()
    result_prefix = "frame_"

    def __init__(
        self, form: str = '{"actions": [[…], …]}', longest_turn: int = LONGEST_TURN
    ) -> None:
        self._longest = longest_turn
        self._form = f"Reply with one JSON object, {form}"

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn; no text makes this method raise.

        Problem codes: ``too_long``, ``thought_unclosed``, ``bad_json``, ``not_an_object``.
        """
        if len(text) > self._longest:
            message = f"Your turn has {len(text)} characters; at most {self._longest} are read."
            return _problem(None, "too_long", message)
        rest = text.strip()
        thought: str | None = None
        if rest.startswith(_OPENING):
            thought, closing, rest = rest.removeprefix(_OPENING).partition(_CLOSING)
            if not closing:
                message = f"The thought is not closed with {_CLOSING}."
                return _problem(None, "thought_unclosed", message)
        try:
            value = from_json(without_fence(rest.strip()), allow_inf_nan=False)
        except ValueError as error:
            message = f"Your turn is not valid JSON ({shown(str(error))}). {self._form}."
            return _problem(thought, "bad_json", message)
        except TypeError:  # half a surrogate pair
            message = f"Your turn holds a broken character. {self._form}."
            return _problem(thought, "bad_json", message)
        if not isinstance(value, dict):
            message = f"{self._form}; you wrote {shown(value)}."
            return _problem(thought, "not_an_object", message)
        return ParsedTurn(thought, (ToolCall(TOOL, value),))

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; an answer is written as ``{"answer": …}``, which no valid turn contains."""
        thought = "" if turn.thought is None else f"{_OPENING}{turn.thought}{_CLOSING}\n"
        if turn.calls:
            return thought + json.dumps(dict(turn.calls[0].arguments))
        return thought + json.dumps({} if turn.answer is None else {"answer": turn.answer})

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return the parts of a result without changes; its texts announce the images."""
        return tuple(parts)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return an error message that begins with ``Error:``."""
        return (f"Error: {message}\n",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return a description of the format of a turn and of each tool."""
        return "\n".join([f"{self._form}.", *(tool.description for tool in tools)])

    def answer_regex(self, prefix: str) -> str:
        """Return an expression that matches nothing, because no turn is an answer."""
        return r"(?!)"


def _problem(thought: str | None, code: str, message: str) -> ParsedTurn:
    return ParsedTurn(thought, problems=(Problem(code, message, in_call=True),))
