"""Implements the grammar of Hermes and Qwen: any number of JSON calls in a turn, or an answer.

A turn may begin with ``<think>…</think>``. Then it has one or more calls, which run in order::

    <tool_call>
    {"name": "zoom", "arguments": {"bbox": [12, 40, 96, 88]}}
    </tool_call>
    <tool_call>
    {"name": "zoom", "arguments": {"bbox": [120, 44, 180, 90]}}
    </tool_call>

A turn without a call is final. Its answer is the content of ``<answer>``, or else its whole text
outside the thought, as in the chat templates of these models. Each result is written inside its own
``<tool_response>``. All text inside a thought is part of the thought, also text that looks like a
call; text between calls is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from visenv.grammar.base import ParsedTurn, Problem
from visenv.grammar.blocks import TurnReader
from visenv.grammar.json_call import read_call
from visenv.grammar.tool_call import ToolCallGrammar, example_call, schema_line

if TYPE_CHECKING:
    from visenv.tools.base import Tool

_TURNS = TurnReader({"tool_call": read_call})


class HermesGrammar(ToolCallGrammar):
    """Reads a thought, then one or more tool calls in JSON, or the answer.

    If one of the calls is malformed, no call of the turn is executed.
    """

    stop: tuple[str, ...] = ("</answer>",)

    def __init__(self) -> None:
        super().__init__()

    @override
    def parse(self, text: str) -> ParsedTurn:
        """Read one turn, in time linear in its length; never raise.

        Problem codes are those of `ToolCallGrammar` without ``several_calls``; ``no_action`` is a
        turn with neither a call nor any text outside its thought.
        """
        blocks = _TURNS.scan(text)
        several = blocks.calls if len(blocks.calls) > 1 else ()
        if blocks.unclosed or blocks.answers or not (several or blocks.outside.strip()):
            # Several calls next to an answer are one violation, that of `call_and_answer`.
            return _TURNS.combine(blocks._replace(calls=blocks.calls[:1]))
        thought = blocks.thoughts[0] if blocks.thoughts else None
        if not blocks.calls:
            return ParsedTurn(thought, answer=blocks.outside.strip())
        calls = [read_call(body) for body in blocks.calls]
        problems = tuple([call for call in calls if isinstance(call, Problem)][:1])
        if problems:
            return ParsedTurn(thought, problems=problems)
        return ParsedTurn(thought, tuple([call for call in calls if not isinstance(call, Problem)]))

    @override
    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return instructions in the words of Qwen's chat template, with an example of a call."""
        if not tools:
            return super().instructions(tools)
        schemas = "\n".join(map(schema_line, tools))
        return (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n"
            f"<tools>\n{schemas}\n</tools>\n\n"
            "For each function call, return a json object with function name and arguments within "
            "<tool_call></tool_call> XML tags, for example:\n"
            f"<tool_call>\n{example_call(tools[0])}\n</tool_call>\n"
            "Begin each step by reasoning inside <think></think> tags. The results are shown to "
            "you inside <tool_response></tool_response> tags, in the order of the calls; an image "
            "is announced by its name. When you know the answer, write it inside "
            "<answer></answer> tags, without a call."
        )
