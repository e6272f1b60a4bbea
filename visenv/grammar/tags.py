"""Implements the grammar of Visual-ARFT (arXiv 2505.14246, figures 5 and 6), with a tag per action.

A turn is ``<think>…</think>`` and then exactly one of ``<answer>…</answer>`` and::

    <search>who designed the bridge</search>
    <problem>{'rotation90', 'dark'}</problem>
    <code>```python
    import cv2
    ```</code>

The result of an action is written inside ``<information>``. All text inside a thought is part of
the thought, also text that looks like an action. Text outside the tags is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from visenv.errors import UnknownNameError
from visenv.grammar.base import ParsedTurn, Problem, ToolCall
from visenv.grammar.blocks import TurnReader, answer_regex
from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

_FENCE = "```"
_FENCED = re.compile(r"```(?:(?:python3?|py)\b)?", re.IGNORECASE)
_LABEL = r"""(?:'[^'"]*+'|"[^'"]*+")"""
_LABELS = re.compile(rf"\{{\s*+(?:{_LABEL}\s*+(?:,\s*+|(?=\}})))*+\}}")
_BAD_LABELS = Problem(
    "bad_labels",
    "Between <problem> and </problem> write a set of quoted labels, for example {'dark', 'noise'}.",
    True,
)


class TagGrammar:
    """Reads a thought, then one action in its own tag, or the answer.

    Args:
        actions: The available actions, of ``"search"``, ``"problem"`` and ``"code"``; each calls
            the tool of the same name, with the argument ``query``, ``labels`` or ``code``.

    Raises:
        UnknownNameError: If there is no such action.
    """

    result_prefix = "result_"

    def __init__(self, actions: Sequence[str]) -> None:
        for name in actions:
            if name not in _ACTIONS:
                raise UnknownNameError("action", name, _ACTIONS)
        self.actions = tuple(actions)
        self.stop = (*(f"</{name}>" for name in actions), "</answer>")
        self._turns = TurnReader({name: _ACTIONS[name].read for name in actions})

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn in one pass over its tags.

        Problem codes: ``no_action``, ``thought_unclosed``, ``answer_unclosed``, ``several_calls``,
        ``several_answers``, ``call_and_answer``, ``bad_labels``, and ``search_unclosed``,
        ``problem_unclosed``, ``code_unclosed``.
        """
        return self._turns.read(text)

    def well_formed(self, text: str) -> bool:
        """Return whether a turn is one thought and then one action or answer, and nothing else.

        White space may surround both; neither may contain a tag. The content of an action is not
        checked.
        """
        pieces = self._turns.tag.split(text)  # text at even indices, tags at odd ones
        if len(pieces) != 9 or any(pieces[place].strip() for place in (0, 4, 8)):
            return False
        think, unthink, action, unaction = pieces[1::2]
        opens = action[1] != "/" and action != "<think>"
        return (think, unthink) == ("<think>", "</think>") and (
            opens and unaction == f"</{action[1:]}"
        )

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; this is the inverse of `parse` for texts without tags."""
        head = "" if turn.thought is None else f"<think>{turn.thought}</think>"
        if turn.answer is not None:
            return f"{head}<answer>{turn.answer}</answer>"
        return head + "".join(map(_written, turn.calls))

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return the whole result inside ``<information>``.

        Images have no names in this grammar.
        """
        rendered: list[Part] = ["<information>"]
        for part in parts:
            if isinstance(part, str):
                rendered[-1] = f"{rendered[-1]}\n{part}\n"
            else:
                rendered += [part, ""]
        rendered[-1] = f"{rendered[-1]}</information>"
        return tuple(rendered)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return the error as information that begins with ``Error:``."""
        return (f"<information>\nError: {message}\n</information>",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return instructions for writing turns, with an example for the tag of each action."""
        listed = "\n\n".join(f"{_example(tool)}\n{tool.description}" for tool in tools)
        return (
            "Work in steps. Begin each step by reasoning inside <think> </think> tags. Then write "
            "exactly one of the following, and nothing after it:\n\n"
            f"{listed}\n\n<answer> your final answer, as short as it can be </answer>\n"
            "Ends the task.\n\n"
            "What comes of a step is shown to you inside <information> </information> tags."
        )

    def answer_regex(self, prefix: str) -> str:
        """Return an expression for thought and answer; see `visenv.grammar.blocks.answer_regex`."""
        return answer_regex(prefix)


def _read_search(body: str) -> ToolCall | Problem:
    return ToolCall("search", {"query": body.strip()})


def _read_problem(body: str) -> ToolCall | Problem:
    text = body.strip()
    if _LABELS.fullmatch(text) is None:
        return _BAD_LABELS
    return ToolCall("problem", {"labels": [label[1:-1] for label in re.findall(_LABEL, text)]})


def _read_code(body: str) -> ToolCall | Problem:
    return ToolCall("code", {"code": unfenced(body)})


def unfenced(body: str) -> str:
    """Return the code between the first fence, with which the body begins, and the last one."""
    body = body.strip()
    opened = _FENCED.match(body)
    if opened is None:
        return body
    code, closed, _ = body[opened.end() :].rpartition(_FENCE)
    return (code if closed else body[opened.end() :]).strip()


def _write_labels(labels: Sequence[str]) -> str:
    return "{" + ", ".join(f"'{label}'" for label in labels) + "}"


class _Action(NamedTuple):
    """Describes an action: the argument of its call, and how its tag is read and written."""

    argument: str
    read: Callable[[str], ToolCall | Problem]
    write: Callable[[Any], str]


_ACTIONS: Mapping[str, _Action] = {
    "search": _Action("query", _read_search, str),
    "problem": _Action("labels", _read_problem, _write_labels),
    "code": _Action("code", _read_code, f"{_FENCE}python\n{{}}\n{_FENCE}".format),
}


def _written(call: ToolCall) -> str:
    action = _ACTIONS[call.name]
    return f"<{call.name}>{action.write(call.arguments[action.argument])}</{call.name}>"


def _example(tool: Tool[Any]) -> str:
    return _written(ToolCall(tool.name, tool.example().model_dump(mode="json")))
