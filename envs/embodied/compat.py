"""Reads the replies of a policy as EmbodiedBench's planner does (``compat="embodiedbench"``)."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

from typing_extensions import override

from visenv.grammar import ParsedTurn, Problem, ToolCall
from visenv.grammar.plan import PLAN_KEY, TOOL, PlanGrammar

OUTPUT_ERRORS = ("bad_json", "bad_plan")
"""Codes of the problems that EmbodiedBench counts as ``planner_output_error``. It counts an id that
is out of range as an invalid action, but not as an error of the output."""


class EmbodiedBenchGrammar(PlanGrammar):
    """Reads plans of numbered actions with the rules of EmbodiedBench's parser.

    Only the ids of the plan matter: texts and names may be missing or have any type, a plan may
    have any number of actions, and a plan that is an empty object or an empty text ends the
    episode. The reply must be a JSON document and nothing else. Python's ``json`` reads it, so that
    ``NaN`` and ``Infinity`` are numbers.

    An id that is a number but not an integer (``true``, ``3.0``) ends the plan, like an id that is
    out of range. EmbodiedBench executes the actions before such an id, then its environment raises
    an error, and its evaluator asks the policy again without a limit.
    """

    @override
    def parse(self, text: str) -> ParsedTurn:
        """Read one turn; no text makes this method raise.

        Problem codes: ``bad_json``, ``bad_plan``, ``out_of_range``, ``bad_id``.
        """
        try:
            reply = json.loads(text)
        except (ValueError, RecursionError):
            return _refused("bad_json", "Your reply is not valid JSON.")
        thought = self._thought(reply)
        try:
            ids = self._ids_in_range([entry["action_id"] for entry in reply[PLAN_KEY]])
        except (TypeError, KeyError):
            return _refused("bad_plan", f'"{PLAN_KEY}" must be a list of actions with ids.')
        if ids == []:
            return ParsedTurn(thought, answer="")
        if ids is None:
            return _refused("out_of_range", f"Ids go from 0 to {len(self.actions) - 1}.")
        whole = tuple(takewhile(lambda each: type(each) is int, ids))
        if not whole:
            return _refused("bad_id", "Ids are integers.")
        calls = [
            ToolCall(TOOL, {"action_id": each, "action_name": self.actions[each]}) for each in whole
        ]
        return ParsedTurn(thought, calls=tuple(calls))

    def _ids_in_range(self, ids: list[Any]) -> list[Any] | None:
        """Return the ids before the first one out of range; None if that is the first id.

        An id before it that is no number raises `TypeError`.
        """
        for place, each in enumerate(ids):
            if each >= len(self.actions) or each < 0:  # `nan` is neither
                return ids[:place] or None
        return ids

    def _thought(self, reply: Any) -> str:
        """Return the texts of a reply, one line each; those that are no text are empty."""
        values = reply if isinstance(reply, dict) else {}
        texts = [values.get(key) for key in self.text_keys]
        return "\n".join(
            " ".join(text.splitlines()) if isinstance(text, str) else "" for text in texts
        )


def _refused(code: str, message: str) -> ParsedTurn:
    return ParsedTurn(problems=(Problem(code, message),))
