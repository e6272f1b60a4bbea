"""The `key: value` grammar of Groundlight's zoom paper (arXiv 2506.14821, §2.1 and appendix A).

A turn is ``<think>…</think>`` and then either ``<answer>…</answer>`` or::

    <tool>
    name: zoom
    keypoint: [412, 96]
    </tool>

The paper found JSON calls too brittle for a small model. One call to a turn; what stands inside a
thought is thought, whatever it looks like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import from_json

from visenv.grammar.base import Call, ParsedTurn, Problem
from visenv.types import Image, Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

_TAG = re.compile(r"(</?(?:think|tool|answer)>)")
_CLOSING = {"<think>": "</think>", "<tool>": "</tool>", "<answer>": "</answer>"}
_WHOLE_TURN = re.compile(
    r"<think>([^<]*)</think>\s*(?:<tool>([^<]*)</tool>|<answer>([^<]*)</answer>)"
)
_LONGEST_VALUE = 4096

_NOTHING = Problem(
    "no_action",
    "Your turn holds neither a tool call nor an answer. After </think> write one "
    "<tool>…</tool> or one <answer>…</answer>.",
)
_UNCLOSED_THOUGHT = Problem("thought_unclosed", "Your <think> is never closed with </think>.")
_SEVERAL_CALLS = Problem("several_calls", "Call one tool to a turn; you called several.", True)
_SEVERAL_ANSWERS = Problem("several_answers", "Give one <answer>; you gave several.")
_CALL_AND_ANSWER = Problem(
    "call_and_answer",
    "Either use a tool or answer, not both in one turn: an answer ends the episode before the "
    "result could be seen.",
    True,
)


class Blocks(NamedTuple):
    """A turn cut at its tags.

    Attributes:
        thoughts: What stands inside ``<think>`` blocks.
        calls: What stands inside ``<tool>`` blocks outside thoughts.
        answers: What stands inside ``<answer>`` blocks outside thoughts.
        outside: All text outside closed blocks.
        unclosed: The tag of a block that is never closed, where the scan ended; otherwise ``""``.
    """

    thoughts: tuple[str, ...]
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    outside: str
    unclosed: str


class KeyValueGrammar:
    """Thought, then a tool call in `key: value` lines, or the answer."""

    stop: tuple[str, ...] = ("</tool>", "</answer>")
    result_prefix = "tool_result_"

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn in one pass over its tags.

        Problem codes: ``no_action``, ``thought_unclosed``, ``tool_unclosed``, ``answer_unclosed``,
        ``several_calls``, ``several_answers``, ``call_and_answer``, ``no_name``, ``bad_line``,
        ``repeated_key``.
        """
        whole = _WHOLE_TURN.fullmatch(text)
        if whole is None:
            return _combine(scan(text))
        thought, call, answer = whole.groups()  # almost every turn: three times faster
        return _called(thought, call) if answer is None else ParsedTurn(thought, (), answer.strip())

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; the inverse of `parse` for texts without tags."""
        head = "" if turn.thought is None else f"<think>{turn.thought}</think>"
        if turn.answer is not None:
            return f"{head}<answer>{turn.answer}</answer>"
        return head + "".join(f"<tool>\n{_lines(call)}\n</tool>" for call in turn.calls)

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Text inside ``<result>``; before each image its name inside ``<image_name>``."""
        rendered: list[Part] = []
        names_left = iter(names)
        for part in parts:
            if isinstance(part, Image):
                rendered += [f"<image_name> {next(names_left)} </image_name>\n", part]
            else:
                rendered.append(f"<result>\n{part}\n</result>")
        return tuple(rendered)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """An error is a text result that begins with ``Error:``."""
        return (f"<result>\nError: {message}\n</result>",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """How to speak, and each tool with an example call."""
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
        """The published expression: no ``<`` in thought or answer (paper §2.1)."""
        opening = "" if prefix.startswith("<think>") else "<think>"
        return f"{opening}([^<]*)</think>([^<]*)<answer>([^<]*)</answer>"


def scan(text: str) -> Blocks:
    """Cut a turn at its tags; linear in its length, and total."""
    pieces = _TAG.split(text)  # text at even places, tags at odd ones
    thoughts: list[str] = []
    calls: list[str] = []
    answers: list[str] = []
    found = {"<think>": thoughts, "<tool>": calls, "<answer>": answers}
    outside = [pieces[0]]
    unclosed = ""
    place = 1
    while place < len(pieces):
        end = place
        tag = pieces[place]
        if tag in found:
            end = _closing(pieces, place)
            if not end:
                unclosed = tag[1:-1]
                break
            found[tag].append("".join(pieces[place + 1 : end]))
        else:
            outside.append(tag)  # a closing tag without its opening is text
        outside.append(pieces[end + 1])
        place = end + 2
    return Blocks(tuple(thoughts), tuple(calls), tuple(answers), "".join(outside), unclosed)


def _closing(pieces: list[str], place: int) -> int:
    """Where the block that opens at `place` is closed; 0 if it never is.

    A thought ends at its first closing tag, other blocks must at the very next tag.
    """
    tag = pieces[place]
    last = len(pieces) if tag == "<think>" else place + 3
    try:
        return pieces.index(_CLOSING[tag], place + 1, last)
    except ValueError:
        return 0


def _unclosed(name: str) -> Problem:
    if name == "think":
        return _UNCLOSED_THOUGHT
    message = f"Your <{name}> is not closed with </{name}> before another tag or the end."
    return Problem(f"{name}_unclosed", message, name == "tool")


def _combine(blocks: Blocks) -> ParsedTurn:
    thoughts, calls, answers, _, unclosed = blocks
    thought = thoughts[0] if thoughts else None
    if unclosed:
        return ParsedTurn(thought, problems=(_unclosed(unclosed),))
    if calls and answers:
        return ParsedTurn(thought, problems=(_CALL_AND_ANSWER,))
    if len(calls) > 1:
        return ParsedTurn(thought, problems=(_SEVERAL_CALLS,))
    if len(answers) > 1:
        return ParsedTurn(thought, problems=(_SEVERAL_ANSWERS,))
    if answers:
        return ParsedTurn(thought, answer=answers[0].strip())
    return _called(thought, calls[0]) if calls else ParsedTurn(thought, problems=(_NOTHING,))


def _called(thought: str | None, body: str) -> ParsedTurn:
    call = _read_call(body)
    if isinstance(call, Problem):
        return ParsedTurn(thought, problems=(call,))
    return ParsedTurn(thought, (call,))


def _read_call(body: str) -> Call | Problem:
    values: dict[str, str] = {}
    for line in body.strip().splitlines():
        key, colon, value = line.partition(":")
        key = key.strip()
        if key in values:
            return Problem("repeated_key", "A key stands twice in your call.", True)
        if key and colon:
            values[key] = value.strip()
        elif key or colon:  # a line with neither is blank
            return Problem("bad_line", "Each line of a call must read 'key: value'.", True)
    name = values.pop("name", None)
    if not name:
        return Problem("no_name", "The first line of a call must be 'name: <tool name>'.", True)
    return Call(name, {key: _value(text) for key, text in values.items()})


def _value(text: str) -> Any:
    """JSON where it is JSON, otherwise the text; the tool's model judges either."""
    if len(text) > _LONGEST_VALUE:
        return text
    try:
        return from_json(text)
    except ValueError:
        return text


def _lines(call: Call) -> str:
    lines = [f"name: {call.name}"]
    for key, value in call.arguments.items():
        bare = isinstance(value, str) and _value(value) == value and value == value.strip()
        lines.append(f"{key}: {value if bare and value.isprintable() else json.dumps(value)}")
    return "\n".join(lines)


def _describe(tool: Tool[Any]) -> str:
    arguments: Mapping[str, Any] = tool.example().model_dump()
    example = _lines(Call(tool.name, arguments))
    fields = "\n".join(
        f"- {key}: {field.description}" for key, field in tool.arguments.model_fields.items()
    )
    return (
        f"Tool: {tool.name}\n{tool.description}\nArguments:\n{fields}\n"
        f"Example:\n<tool>\n{example}\n</tool>"
    )
