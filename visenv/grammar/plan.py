"""Reads plans of numbered actions in JSON, as EmbodiedBench's planners write them.

A turn is one JSON object::

    {"visual_state_description": "A mug is on the table.", "reasoning_and_reflection": "...",
     "language_plan": "1. Find the mug. 2. Pick it up.",
     "executable_plan": [{"action_id": 3, "action_name": "find a Mug"},
                         {"action_id": 9, "action_name": "pick up the Mug"}]}

Each action becomes one `ToolCall` of the tool `TOOL`. An empty plan is an answer, which ends the
episode. The first id that is not in the numbered list ends the plan: that action and later ones are
dropped. A plan that begins with such an id is a `Problem`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from visenv.grammar.base import ParsedTurn, Problem, ToolCall, without_fence
from visenv.rebuilt_prompt import SilentResults
from visenv.tools.base import shown

if TYPE_CHECKING:
    from visenv.tools.base import Tool

TOOL = "act"
"""Name of the tool that each action of a plan calls, with ``action_id`` and ``action_name``."""

LONGEST_TURN = 1 << 16
"""Maximum number of characters of a turn."""

TEXT_KEYS = ("visual_state_description", "reasoning_and_reflection", "language_plan")
PLAN_KEY = "executable_plan"
LONGEST_NAME = 100
"""Maximum number of characters of an action's name in a constrained turn."""

_FORM = (
    f'Reply with one JSON object that has the keys "{TEXT_KEYS[0]}", "{TEXT_KEYS[1]}", '
    f'"{TEXT_KEYS[2]}" and "{PLAN_KEY}"'
)
_ENTRY = 'An action is {"action_id": <number>, "action_name": "<name>"}'
_DIGITS = r"(?:0|[1-9][0-9]{0,3})"


class PlanGrammar(SilentResults):
    """Reads plans of numbered actions. A prompt that is rebuilt every turn contains their results.

    Args:
        actions: The names of the episode's actions; the id of an action is its index.
        most_actions: Maximum number of actions of one plan.
        describes_images: Whether a turn has the key ``"visual_state_description"``.
        checks_names: Whether a name that contradicts its id is a problem; otherwise names are
            ignored, as in EmbodiedBench.
        text_characters: Maximum number of characters of each text in a constrained turn
            (`turn_regex`).
    """

    stop: tuple[str, ...] = ()
    result_prefix = "frame_"

    def __init__(
        self,
        actions: Sequence[str] = (),
        *,
        most_actions: int = 20,
        describes_images: bool = True,
        checks_names: bool = True,
        text_characters: int = 600,
    ) -> None:
        self.actions = tuple(actions)
        self.most_actions = most_actions
        self.checks_names = checks_names
        self.text_keys = TEXT_KEYS if describes_images else TEXT_KEYS[1:]
        self.text_characters = text_characters

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn; no text makes this method raise.

        The texts become the thought, one line each. Problem codes: ``too_long``, ``bad_json``,
        ``not_an_object``, ``bad_text``, ``bad_plan``, ``too_many_actions``, ``bad_action``,
        ``bad_id``, ``bad_name``, ``out_of_range``.
        """
        turn = self._read_object(text)
        if isinstance(turn, Problem):
            return ParsedTurn(problems=(turn,))
        for key in self.text_keys:
            if not isinstance(turn.get(key), str):
                message = f"The value of {key!r} must be a text. {_FORM}."
                return ParsedTurn(problems=(Problem("bad_text", message),))
        thought = "\n".join(" ".join(turn[key].splitlines()) for key in self.text_keys)
        plan = turn.get(PLAN_KEY)
        if not isinstance(plan, list):
            message = f'"{PLAN_KEY}" must be a list of actions. {_ENTRY}.'
            return ParsedTurn(thought, problems=(Problem("bad_plan", message),))
        if not plan:
            return ParsedTurn(thought, answer="")
        calls = self._read_plan(plan)
        if isinstance(calls, Problem):
            return ParsedTurn(thought, problems=(calls,))
        return ParsedTurn(thought, calls=calls)

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; `parse` reads it back if its thought has one line for each text."""
        lines = (turn.thought or "").split("\n", len(self.text_keys) - 1)
        lines += [""] * (len(self.text_keys) - len(lines))
        values: dict[str, Any] = dict(zip(self.text_keys, lines, strict=True))
        values[PLAN_KEY] = [dict(call.arguments) for call in turn.calls]
        return json.dumps(values, ensure_ascii=True)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return a description of the format of a turn."""
        keys = ", ".join(f'"{key}"' for key in self.text_keys)
        return (
            f"Reply with one JSON object. Its keys {keys} hold texts. Its key "
            f'"{PLAN_KEY}" holds a list of at most {self.most_actions} actions, each written '
            'as {"action_id": <number>, "action_name": "<name>"}, with ids and names of the '
            "numbered list. An empty list ends the episode."
        )

    def turn_regex(self, text_characters: int | None = None) -> str:
        """Return a regular expression of a whole turn, in which every part has a bounded length.

        Args:
            text_characters: Maximum number of characters of each text; by default the grammar's.
        """
        most = self.text_characters if text_characters is None else text_characters
        character = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])'
        text = f'"{character}{{0,{most}}}"'
        name = f'"{character}{{1,{LONGEST_NAME}}}"'
        action = rf'\{{"action_id": {_DIGITS}, "action_name": {name}\}}'
        plan = rf"\[(?:{action}(?:, {action}){{0,{self.most_actions - 1}}})?\]"
        texts = "".join(f'"{key}": {text}, ' for key in self.text_keys)
        return rf'\{{{texts}"{PLAN_KEY}": {plan}\}}'

    def answer_regex(self, prefix: str) -> str:
        """Return an expression for a turn with an empty plan; `prefix` must be empty."""
        texts = "".join(rf'"{key}": "[^"\\\x00-\x1f]{{0,100}}", ' for key in self.text_keys)
        return rf'\{{{texts}"{PLAN_KEY}": \[\]\}}'

    # ------------------------------------------------------------------ internals

    def _read_object(self, text: str) -> dict[str, Any] | Problem:
        if len(text) > LONGEST_TURN:
            message = f"Your reply has {len(text)} characters; at most {LONGEST_TURN} are read."
            return Problem("too_long", message)
        try:
            value = from_json(without_fence(text.strip()), allow_inf_nan=False)
        except (ValueError, TypeError) as error:  # TypeError: half a surrogate pair
            reason = shown(str(error)) if isinstance(error, ValueError) else "a broken character"
            return Problem("bad_json", f"Your reply is not valid JSON ({reason}). {_FORM}.")
        if not isinstance(value, dict):
            return Problem("not_an_object", f"{_FORM}; you wrote {shown(value)}.")
        return value

    def _read_plan(self, plan: Sequence[Any]) -> tuple[ToolCall, ...] | Problem:
        if len(plan) > self.most_actions:
            message = f"A plan has at most {self.most_actions} actions; yours has {len(plan)}."
            return Problem("too_many_actions", message)
        calls: list[ToolCall] = []
        for entry in plan:
            problem = self._problem_of(entry)
            if problem is not None:
                if problem.code == "out_of_range" and calls:
                    break
                return problem
            action_id = entry["action_id"]
            calls.append(
                ToolCall(TOOL, {"action_id": action_id, "action_name": self.actions[action_id]})
            )
        return tuple(calls)

    def _problem_of(self, entry: Any) -> Problem | None:
        """Return the problem of one action of a plan, or None."""
        if not isinstance(entry, dict) or "action_id" not in entry:
            return Problem("bad_action", f"{_ENTRY}; you wrote {shown(entry)}.")
        action_id, name = entry["action_id"], entry.get("action_name")
        if type(action_id) is not int:  # `True` and 3.0 are not ids
            message = f'"action_id" must be a whole number, got {shown(action_id)}.'
            return Problem("bad_id", message)
        if not 0 <= action_id < len(self.actions):
            message = (
                f"There is no action {shown(action_id)}; ids go from 0 to {len(self.actions) - 1}."
            )
            return Problem("out_of_range", message)
        expected = self.actions[action_id]
        if self.checks_names and name != expected:
            message = f"Action {action_id} is {expected!r}, not {shown(name)}."
            return Problem("bad_name", message)
        return None
