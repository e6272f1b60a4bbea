"""Implements the think-act-observe grammar of ARM-Thinker (paper §3.1): JSON calls, or an answer.

A turn is ``<think>…</think>`` and then either ``<answer>…</answer>`` or::

    <tool_call>
    {"name": "doc_page_retrieval_by_index", "arguments": {"filename": "report", "image_idx": 3}}
    </tool_call>

The result of a tool is written inside ``<tool_response>``. A turn has one call. All text inside a
thought is part of the thought, also text that looks like a call. Text outside the tags is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import override

from visenv.errors import UnknownNameError
from visenv.grammar.base import ParsedTurn, Problem, ToolCall
from visenv.grammar.blocks import TurnReader, answer_regex
from visenv.grammar.json_call import read_call, read_published_call
from visenv.types import Image, Part

if TYPE_CHECKING:
    from visenv.tools.base import Arguments, Tool

Compat = Literal["arm"] | None

_TURNS = TurnReader({"tool_call": read_call})
_read = _TURNS.read
scan = _TURNS.scan

_OPENING, _CLOSING = "<tool_call>", "</tool_call>"
_PUBLISHED_ANSWER = (re.compile("<answer>", re.IGNORECASE), re.compile("</answer>", re.IGNORECASE))


class ToolCallGrammar:
    """Reads a thought, then a tool call in JSON, or the answer.

    Args:
        compat: ``"arm"`` reads turns as the public code does. A turn ends after its first
            ``</tool_call>``. The text between the first ``<tool_call>`` and that tag is the call,
            also inside a thought; a malformed call is dropped without a message. A turn without a
            call is final: its answer is the content of its first ``<answer>``, or the whole turn.

    Raises:
        UnknownNameError: If `compat` is neither ``"arm"`` nor None.
    """

    stop: tuple[str, ...] = (_CLOSING, "</answer>")
    result_prefix = "observation_"

    def __init__(self, compat: Compat = None) -> None:
        if compat not in (None, "arm"):
            raise UnknownNameError("compat", str(compat), ["arm"])
        self.compat = compat

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn, in time linear in its length; never raise.

        Problem codes of the turn: ``no_action``, ``thought_unclosed``, ``tool_call_unclosed``,
        ``answer_unclosed``, ``several_calls``, ``several_answers``, ``call_and_answer``; of its
        call: ``too_long``, ``bad_json``, ``too_deep``, ``bad_character``, ``repeated_key``,
        ``not_finite``, ``not_an_object``, ``missing_key``, ``extra_key``, ``bad_name``,
        ``bad_arguments``.
        """
        return _read_published(text) if self.compat else _read(text)

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; this is the inverse of `parse` for thoughts and answers without tags."""
        blocks = [] if turn.thought is None else [f"<think>{turn.thought}</think>"]
        if turn.answer is not None:
            blocks.append(f"<answer>{turn.answer}</answer>")
        else:
            blocks += [f"{_OPENING}\n{_as_json(call)}\n{_CLOSING}" for call in turn.calls]
        return "\n".join(blocks)

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return the whole result inside ``<tool_response>``; each image follows its name.

        A video has no name.
        """
        rendered: list[Part] = ["<tool_response>"]
        names_left = iter(names)
        for part in parts:
            if isinstance(part, str):
                rendered[-1] = f"{rendered[-1]}\n{part}"
                continue
            name = f"{next(names_left)}:\n" if isinstance(part, Image) else ""
            rendered[-1] = f"{rendered[-1]}\n{name}"
            rendered += [part, ""]
        rendered[-1] = f"{rendered[-1]}\n</tool_response>"
        return tuple(rendered)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return the error as a result that begins with ``Error:``."""
        return (f"<tool_response>\nError: {message}\n</tool_response>",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return instructions for writing turns, with the JSON schema of each tool on a line."""
        if not tools:
            return (
                "Reason inside <think></think> tags, then give your final answer inside "
                "<answer></answer> tags. You have no tools."
            )
        schemas = "\n".join(schema_line(tool) for tool in tools)
        example = example_call(tools[0])
        return (
            "You can use these tools; each line is the JSON schema of one:\n"
            f"<tools>\n{schemas}\n</tools>\n\n"
            "Work in steps. Begin each step by reasoning inside <think></think> tags. Then do "
            "exactly one of two things: call one tool inside <tool_call></tool_call> tags, or give "
            "your final answer inside <answer></answer> tags.\n"
            'A call is one JSON object with the keys "name" and "arguments", for example:\n'
            f"{_OPENING}\n{example}\n{_CLOSING}\n"
            "What the tool returns is shown to you inside <tool_response></tool_response> tags. "
            "An image it returns is announced by its name; use that name to refer to it later."
        )

    def answer_regex(self, prefix: str) -> str:
        """Return an expression for thought and answer; see `visenv.grammar.blocks.answer_regex`."""
        return answer_regex(prefix)


def _read_published(text: str) -> ParsedTurn:
    """Read one turn as the public loop does (its ``agent_verl.py`` and ``tool_parser.py``)."""
    end = text.find(_CLOSING)
    start = text.find(_OPENING, 0, max(end, 0))
    cut = text if end < 0 else text[: end + len(_CLOSING)]
    thoughts = scan(cut).thoughts
    thought = thoughts[0] if thoughts else None
    call = None if start < 0 else read_published_call(text[start + len(_OPENING) : end])
    if isinstance(call, Problem):
        return ParsedTurn(thought, problems=(call,))
    if call is not None:
        return ParsedTurn(thought, (call,))
    return ParsedTurn(thought, answer=_published_answer(cut))


def _published_answer(text: str) -> str:
    opening, closing = _PUBLISHED_ANSWER
    begun = opening.search(text)
    ended = begun and closing.search(text, begun.end())
    return text[begun.end() : ended.start()].strip() if begun and ended else text.strip()


def _as_json(call: ToolCall) -> str:
    """Return the call on one line.

    Tags inside strings are escaped, so that they do not end the call.
    """
    written = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return written if _TURNS.tag.search(written) is None else written.replace("<", "\\u003c")


class _Schema(GenerateJsonSchema):
    """Writes the schema in the usual order of tool schemas, without the titles of pydantic."""

    @override
    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@lru_cache(maxsize=256)
def _parameters(arguments: type[Arguments]) -> Mapping[str, Any]:
    schema = arguments.model_json_schema(schema_generator=_Schema)
    # The name and docstring of the model class are for developers.
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def example_call(tool: Tool[Any]) -> str:
    """Return an example of a call of a tool, on one line."""
    return _as_json(ToolCall(tool.name, tool.example().model_dump(mode="json")))


def schema_line(tool: Tool[Any]) -> str:
    """Return the JSON schema of a tool on one line, as OpenAI's API takes it."""
    arguments: type[Arguments] = tool.arguments
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": _parameters(arguments),
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)
