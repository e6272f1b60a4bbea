"""Implements the two-round protocol of Mags-RL (appendix A): boxes in a thought, then the crops.

A turn of round 1 is one thought, which may contain one block of boxes::

    <think>The buses are far away. <zoom>[[12, 40, 96, 88], [120, 44, 180, 90]]</zoom></think>

A turn of round 2 is::

    <rethink>Both crops show a blue bus.</rethink><answer>2</answer>

Text outside the blocks is ignored. The environment decides which round it expects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import from_json

from visenv.grammar.base import ParsedTurn, Problem, ToolCall
from visenv.types import Part

if TYPE_CHECKING:
    from visenv.tools.base import Tool

TOOL = "zoom"
"""Name of the tool that `<zoom>` calls; its argument is ``boxes``."""

LONGEST_BLOCK = 1 << 18
"""Maximum number of characters of a `<zoom>` block."""

_TAG = re.compile(r"(</?(?:think|zoom|rethink|answer)>)")
_FORM = "Between <zoom> and </zoom> write a list of boxes, for example [[10, 20, 60, 80]]."
_BAD_BOXES = Problem("bad_boxes", _FORM, True)
_TOO_LONG = Problem("too_long", f"A <zoom> block has at most {LONGEST_BLOCK} characters.", True)
_SEVERAL_BLOCKS = Problem(
    "several_calls", "Write one <zoom> block; put all boxes into its list.", True
)
_ZOOM_UNCLOSED = Problem("zoom_unclosed", "Your <zoom> is never closed with </zoom>.", True)
_THOUGHT_UNCLOSED = Problem("thought_unclosed", "Your <think> is never closed with </think>.")
_ANSWER_UNCLOSED = Problem("answer_unclosed", "Your <answer> is never closed with </answer>.")
_ANSWER_IN_THOUGHT = Problem(
    "answer_in_thought", "Write <answer> after the thought, not inside it."
)
_SEVERAL_ANSWERS = Problem("several_answers", "Give one <answer>; you gave several.")
_CALL_AND_ANSWER = Problem(
    "call_and_answer", "Zoom in one turn and answer in the next, not both in one.", True
)
_NOTHING = Problem(
    "no_action",
    "Your turn holds neither a thought nor an answer. Write <think>…</think>, or "
    "<rethink>…</rethink><answer>…</answer>.",
)


class ZoomRounds(NamedTuple):
    """Holds the blocks of a turn.

    Attributes:
        thought: Content of the first closed ``<think>``, without its closed ``<zoom>`` blocks; None
            if there is none.
        rethought: Content of the first closed ``<rethink>``, or None.
        zooms: Contents of the ``<zoom>`` blocks of the thought.
        answers: Contents of the ``<answer>`` blocks outside the thought.
        answers_inside: Whether the thought contains a closed ``<answer>`` block.
        outside: All other text.
        unclosed: ``"think"``, ``"zoom"`` or ``"answer"`` if such a block is never closed.
    """

    thought: str | None
    rethought: str | None
    zooms: tuple[str, ...]
    answers: tuple[str, ...]
    answers_inside: bool
    outside: str
    unclosed: str


def scan(text: str) -> ZoomRounds:
    """Split a turn at its tags, in one pass.

    A ``<rethink>`` that is never closed is plain text, so that it does not hide an answer.
    """
    pieces = _TAG.split(text)
    thought: str | None = None
    rethought: str | None = None
    zooms: tuple[str, ...] = ()
    answers: list[str] = []
    answers_inside = False
    outside = [pieces[0]]
    unclosed = ""
    # Computed once, so that scanning stays linear.
    last_close = max((at for at, piece in enumerate(pieces) if piece == "</rethink>"), default=0)
    place = 1  # index of the next tag; texts are at even indices
    while place < len(pieces):
        tag, end = pieces[place], place
        if tag == "<think>" and thought is None:
            if "</think>" not in pieces[place:]:
                unclosed = "think"
                break
            end = pieces.index("</think>", place)
            content = pieces[place + 1 : end]
            thought, zooms, unclosed = _read_thought(content)
            answers_inside = _has_answer(content)
        elif tag == "<rethink>" and rethought is None:
            if place < last_close:
                end = pieces.index("</rethink>", place)
                rethought = "".join(pieces[place + 1 : end])
        elif tag == "<answer>":
            if pieces[place + 2 : place + 3] != ["</answer>"]:
                unclosed = unclosed or "answer"
                break
            end = place + 2
            answers.append(pieces[place + 1])
        if end == place:
            outside.append(tag)
        outside.append(pieces[end + 1])
        place = end + 2
    return ZoomRounds(
        thought, rethought, zooms, tuple(answers), answers_inside, "".join(outside), unclosed
    )


def _has_answer(pieces: list[str]) -> bool:
    """Return whether an opening ``<answer>`` is followed by a closing one."""
    return "<answer>" in pieces and "</answer>" in pieces[pieces.index("<answer>") :]


def _read_thought(pieces: list[str]) -> tuple[str, tuple[str, ...], str]:
    """Return the thought without its zoom blocks, the blocks, and ``"zoom"`` if one is open."""
    words = [pieces[0]]
    zooms: list[str] = []
    unclosed = ""
    place = 1
    while place < len(pieces):
        if pieces[place] == "<zoom>":
            if pieces[place + 2 : place + 3] == ["</zoom>"]:
                zooms.append(pieces[place + 1])
                words.append(pieces[place + 3])
                place += 4
                continue
            unclosed = "zoom"
        words += pieces[place : place + 2]
        place += 2
    return "".join(words), tuple(zooms), unclosed


class ZoomInThinkGrammar:
    """Reads boxes inside the thought in round 1; a second thought and the answer in round 2."""

    stop: tuple[str, ...] = ("</think>", "</answer>")
    result_prefix = "crop_"

    def parse(self, text: str) -> ParsedTurn:
        """Read one turn of either round, in time linear in its length.

        `ParsedTurn.thought` is the thought without its zoom block, or the second thought if the
        turn has no first one. A thought without boxes is well-formed, and has neither call nor
        answer.

        Problem codes: ``no_action``, ``thought_unclosed``, ``zoom_unclosed``, ``answer_unclosed``,
        ``answer_in_thought``, ``several_calls``, ``several_answers``, ``call_and_answer``,
        ``bad_boxes``, ``too_long``.
        """
        rounds = scan(text)
        thought = rounds.rethought if rounds.thought is None else rounds.thought
        problem = _problem_of(rounds)
        if problem is not None:
            return ParsedTurn(thought, problems=(problem,))
        if rounds.answers:
            return ParsedTurn(thought, answer=rounds.answers[0].strip())
        if rounds.zooms:
            call = _read_boxes(rounds.zooms[0])
            if isinstance(call, Problem):
                return ParsedTurn(thought, problems=(call,))
            return ParsedTurn(thought, (call,))
        return ParsedTurn(thought)

    def compose(self, turn: ParsedTurn) -> str:
        """Write a turn; this is the inverse of `parse` for texts without tags."""
        if turn.answer is not None:
            head = "" if turn.thought is None else f"<rethink>{turn.thought}</rethink>"
            return f"{head}<answer>{turn.answer}</answer>"
        blocks = "".join(
            f"<zoom>{json.dumps(call.arguments['boxes'])}</zoom>" for call in turn.calls
        )
        return f"<think>{turn.thought or ''}{blocks}</think>"

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return the crops, each after its name, and texts on separate lines."""
        rendered: list[Part] = []
        names_left = iter(names)
        for part in parts:
            if isinstance(part, str):
                rendered.append(f"\n{part}\n")
            else:
                rendered += [f"{next(names_left, 'crop')}:\n", part]
        return tuple(rendered)

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return a line that begins with ``Error:``."""
        return (f"Error: {message}\n",)

    def instructions(self, tools: Sequence[Tool[Any]]) -> str:
        """Return a description of the two rounds, with an example of the boxes."""
        if not tools:
            return "Reason inside <rethink>…</rethink>, then answer inside <answer>…</answer>."
        arguments: Mapping[str, Any] = tools[0].example().model_dump(mode="json")
        return (
            f"Round 1: reason inside <think>…</think>. {tools[0].description} Write the boxes "
            f"inside the thought: <zoom>{json.dumps(arguments['boxes'])}</zoom>. Stop after "
            "</think>.\n"
            "Round 2: reason again inside <rethink>…</rethink>, then answer inside "
            "<answer>…</answer>."
        )

    def answer_regex(self, prefix: str) -> str:
        """Return an expression for a turn of round 2 after `prefix`, without ``<`` in its texts."""
        if "<answer>" in prefix:
            return "([^<]*)</answer>"
        if prefix.endswith(("</rethink>", "</think>")):
            return r"\s*<answer>([^<]*)</answer>"
        opened = "<rethink>" in prefix or "<think>" in prefix
        name = "think" if "<think>" in prefix else "rethink"
        head = "" if opened else "<rethink>"
        return rf"{head}([^<]*)</{name}>\s*<answer>([^<]*)</answer>"


def _problem_of(rounds: ZoomRounds) -> Problem | None:
    """Return the problem of the form of a turn, or None."""
    if rounds.unclosed:
        unclosed = {"think": _THOUGHT_UNCLOSED, "zoom": _ZOOM_UNCLOSED, "answer": _ANSWER_UNCLOSED}
        return unclosed[rounds.unclosed]
    if rounds.answers_inside:
        return _ANSWER_IN_THOUGHT
    if len(rounds.zooms) > 1:
        return _SEVERAL_BLOCKS
    if len(rounds.answers) > 1:
        return _SEVERAL_ANSWERS
    if rounds.zooms and rounds.answers:
        return _CALL_AND_ANSWER
    if rounds.thought is None and not rounds.answers:
        return _NOTHING
    return None


def _read_boxes(body: str) -> ToolCall | Problem:
    """Read a JSON list; the tool validates its elements."""
    if len(body) > LONGEST_BLOCK:
        return _TOO_LONG
    try:
        boxes = from_json(body.strip())
    except (ValueError, TypeError):  # TypeError: half a surrogate pair has no UTF-8 form
        return _BAD_BOXES
    if not isinstance(boxes, list) or not boxes or not any(isinstance(box, list) for box in boxes):
        return _BAD_BOXES
    return ToolCall(TOOL, {"boxes": boxes})
