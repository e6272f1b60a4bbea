"""Implements the `key: value` grammar of Groundlight's paper (arXiv 2506.14821, §2.1, appendix A).

A turn is ``<think>…</think>`` and then either ``<answer>…</answer>`` or::

    <tool>
    name: zoom
    keypoint: [412, 96]
    </tool>

The paper found that a small model cannot write JSON calls reliably. A turn has one call. All text
inside a thought is part of the thought, also text that looks like a call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from visenv.grammar.base import ParsedTurn, Problem, ToolCall
from visenv.grammar.blocks import TurnReader
from visenv.types import Image, Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

_LONGEST_VALUE = 4096


class KeyValueGrammar:
    """Reads a thought, then a tool call in `key: value` lines, or the answer."""

    stop: tuple[str, ...] = ("</tool>", "</answer>")
    result_prefix = "tool_result_"

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn in one pass over its tags.

        Problem codes: ``no_action``, ``thought_unclosed``, ``tool_unclosed``, ``answer_unclosed``,
        ``several_calls``, ``several_answers``, ``call_and_answer``, ``no_name``, ``bad_line``,
        ``repeated_key``.
        """
        return _read(text)

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; this is the inverse of `parse` for texts without tags."""
        head = "" if turn.thought is None else f"<think>{turn.thought}</think>"
        if turn.answer is not None:
            return f"{head}<answer>{turn.answer}</answer>"
        return head + "".join(f"<tool>\n{_lines(call)}\n</tool>" for call in turn.calls)

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Write text inside ``<result>``, and before each image its name inside ``<image_name>``.

        A video has no name.
        """
        rendered: list[Part] = []
        names_left = iter(names)
        for part in parts:
            if isinstance(part, str):
                rendered.append(f"<result>\n{part}\n</result>")
                continue
            if isinstance(part, Image):
                rendered.append(f"<image_name> {next(names_left)} </image_name>\n")
            rendered.append(part)
        return tuple(rendered)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return the error as a text result that begins with ``Error:``."""
        return (f"<result>\nError: {message}\n</result>",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return how to write turns, with an example call of each tool."""
        described = "\n\n".join(_describe(tool) for tool in tools)
        return (
            f"{described}\n\n"
            "Work in steps. Begin each step by reasoning inside <think> tags. Then do exactly one "
            "of two things: use a tool inside <tool> tags, or give your final answer inside "
            "<answer> tags.\n"
            "A tool call has one line per argument in the form 'key: value', and its first line "
            "is 'name: <tool name>'. What the tool returns is shown to you, text inside <result> "
            "tags. Use only the tools and the keys described here, with values of the form shown."
        )

    def answer_regex(self, prefix: str) -> str:
        """Return the published expression: no ``<`` in thought or answer (paper §2.1)."""
        opening = "" if prefix.startswith("<think>") else "<think>"
        return f"{opening}([^<]*)</think>([^<]*)<answer>([^<]*)</answer>"


def _read_call(body: str) -> ToolCall | Problem:
    values: dict[str, Any] = {}
    for line in body.strip().splitlines():
        key, colon, value = line.partition(":")
        key = key.strip()
        if key in values:
            return Problem("repeated_key", "A key stands twice in your call.", True)
        if key and colon:
            value = value.strip()
            values[key] = value if key == "name" else _value(value)
        elif key or colon:  # a line without key and colon is blank
            return Problem("bad_line", "Each line of a call must read 'key: value'.", True)
    name = values.pop("name", None)
    if not name:
        return Problem("no_name", "The first line of a call must be 'name: <tool name>'.", True)
    return ToolCall(name, values)


def _value(text: str) -> Any:
    """Return the JSON value if the text is JSON, otherwise the text.

    The tool's model validates it.
    """
    if len(text) > _LONGEST_VALUE:
        return text
    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError: half a surrogate pair, not encodable
        return text


def _lines(call: ToolCall) -> str:
    lines = [f"name: {call.name}"]
    for key, value in call.arguments.items():
        bare = isinstance(value, str) and _value(value) == value and value == value.strip()
        lines.append(f"{key}: {value if bare and value.isprintable() else json.dumps(value)}")
    return "\n".join(lines)


def _describe(tool: Tool[Any]) -> str:
    arguments: Mapping[str, Any] = tool.example().model_dump()
    example = _lines(ToolCall(tool.name, arguments))
    fields = "\n".join(
        f"- {key}: {field.description}" for key, field in tool.arguments.model_fields.items()
    )
    return (
        f"Tool: {tool.name}\n{tool.description}\nArguments:\n{fields}\n"
        f"Example:\n<tool>\n{example}\n</tool>"
    )


_TURNS = TurnReader({"tool": _read_call})
_read = _TURNS.read
scan = _TURNS.scan
