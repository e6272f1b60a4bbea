"""Splits a turn at its tags, for all grammars with a thought and then a call or an answer.

A turn has one action. All text inside a thought is part of the thought, also text that looks like a
call. Text outside the tags is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from visenv.grammar.base import ParsedTurn, Problem, ToolCall

_ANSWERED = (
    ("<think>", "([^<]*)"),
    ("</think>", r"\s*"),
    ("<answer>", "([^<]*)"),
    ("</answer>", ""),
)
"""Tags of a turn that answers, each with the tags that may follow it."""

_UNCLOSED_THOUGHT = Problem("thought_unclosed", "Your <think> is never closed with </think>.")
_SEVERAL_CALLS = Problem("several_calls", "Call one tool to a turn; you called several.", True)
_SEVERAL_ANSWERS = Problem("several_answers", "Give one <answer>; you gave several.")
_CALL_AND_ANSWER = Problem(
    "call_and_answer",
    "Either use a tool or answer, not both in one turn: an answer ends the episode before the "
    "result could be seen.",
    True,
)


class TagBlocks(NamedTuple):
    """Holds the blocks of a turn.

    Attributes:
        thoughts: Contents of ``<think>`` blocks.
        calls: Contents of the blocks of calls, outside thoughts.
        answers: Contents of ``<answer>`` blocks outside thoughts.
        outside: All text outside closed blocks.
        unclosed: The tag of a block that is never closed, at which the scan ended; otherwise
            ``""``.
        call_tags: The tag of each call, without its brackets.
    """

    thoughts: tuple[str, ...]
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    outside: str
    unclosed: str
    call_tags: tuple[str, ...]


ReadCall = Callable[[str], ToolCall | Problem]
"""Reads the content of the tag of a call; must not raise on any text."""


class TurnReader:
    """Reads turns of ``<think>…</think>`` and then one call or ``<answer>…</answer>``.

    Problem codes: ``no_action``, ``thought_unclosed``, ``answer_unclosed``, ``several_calls``,
    ``several_answers``, ``call_and_answer``, ``<call tag>_unclosed``, and those of the readers.

    Args:
        readers: The reader of a call, by its tag without brackets.
    """

    def __init__(self, readers: Mapping[str, ReadCall]) -> None:
        names = ("think", *readers, "answer")
        self._readers = dict(readers)
        self.tag = re.compile(f"(</?(?:{'|'.join(names)})>)")
        self._match_whole = re.compile(
            rf"<think>([^<]*)</think>\s*<({'|'.join(names[1:])})>([^<]*)</\2>"
        ).fullmatch
        self._closing = {f"<{name}>": f"</{name}>" for name in names}
        actions = [f"one <{name}>…</{name}>" for name in names[1:]]
        nothing = "neither a tool call nor an answer" if readers else "no answer"
        listed = " or ".join(part for part in (", ".join(actions[:-1]), actions[-1]) if part)
        self._nothing = Problem(
            "no_action", f"Your turn holds {nothing}. After </think> write {listed}."
        )

    def read(self, text: str) -> ParsedTurn:
        """Read one turn in one pass over its tags."""
        whole = self._match_whole(text)
        if whole is None:
            return self.combine(self.scan(text))
        thought, tag, body = whole.groups()  # matches almost every turn: three times faster
        if tag == "answer":
            return ParsedTurn(thought, (), body.strip())
        return self._called(thought, tag, body)

    def scan(self, text: str) -> TagBlocks:
        """Split a turn at its tags, in time linear in its length.

        No text makes this method raise.
        """
        pieces = self.tag.split(text)  # text at even indices, tags at odd ones
        thoughts: list[str] = []
        calls: list[str] = []
        call_tags: list[str] = []
        answers: list[str] = []
        found = {"<think>": thoughts, "<answer>": answers}
        outside = [pieces[0]]
        unclosed = ""
        place = 1
        while place < len(pieces):
            end = place
            tag = pieces[place]
            if tag in self._closing:
                end = _end(pieces, place, self._closing[tag])
                if not end:
                    unclosed = tag[1:-1]
                    break
                found.get(tag, calls).append("".join(pieces[place + 1 : end]))
                if tag not in found:
                    call_tags.append(tag[1:-1])
            else:
                outside.append(tag)  # a closing tag without its opening is text
            outside.append(pieces[end + 1])
            place = end + 2
        return TagBlocks(
            tuple(thoughts),
            tuple(calls),
            tuple(answers),
            "".join(outside),
            unclosed,
            tuple(call_tags),
        )

    def combine(self, blocks: TagBlocks) -> ParsedTurn:
        """Return the turn that consists of these blocks."""
        thoughts, calls, answers, _, unclosed, call_tags = blocks
        thought = thoughts[0] if thoughts else None
        if unclosed:
            return ParsedTurn(thought, problems=(self._unclosed(unclosed),))
        if calls and answers:
            return ParsedTurn(thought, problems=(_CALL_AND_ANSWER,))
        if len(calls) > 1:
            return ParsedTurn(thought, problems=(_SEVERAL_CALLS,))
        if len(answers) > 1:
            return ParsedTurn(thought, problems=(_SEVERAL_ANSWERS,))
        if answers:
            return ParsedTurn(thought, answer=answers[0].strip())
        if calls:
            return self._called(thought, call_tags[0], calls[0])
        return ParsedTurn(thought, problems=(self._nothing,))

    def _called(self, thought: str | None, tag: str, body: str) -> ParsedTurn:
        call = self._readers[tag](body)
        if isinstance(call, Problem):
            return ParsedTurn(thought, problems=(call,))
        return ParsedTurn(thought, (call,))

    def _unclosed(self, name: str) -> Problem:
        if name == "think":
            return _UNCLOSED_THOUGHT
        message = f"Your <{name}> is not closed with </{name}> before another tag or the end."
        return Problem(f"{name}_unclosed", message, name in self._readers)


def _end(pieces: list[str], place: int, closing: str) -> int:
    """Return the index of the closing tag of the block that opens at `place`; 0 if there is none.

    A thought ends at its first closing tag. The closing tag of other blocks must be the next tag.
    """
    last = len(pieces) if closing == "</think>" else place + 3
    try:
        return pieces.index(closing, place + 1, last)
    except ValueError:
        return 0


def answer_regex(prefix: str) -> str:
    """Return an expression for a thought and an answer without ``<``, separated by blanks.

    If the prefix already closes the thought, or opens the answer, the expression matches the rest
    of the turn.
    """
    said = [place for place, (tag, _) in enumerate(_ANSWERED) if tag in prefix]
    start = said[-1] if said else -1
    begun = _ANSWERED[start][1] if said else ""
    return begun + "".join(tag + then for tag, then in _ANSWERED[start + 1 :])
