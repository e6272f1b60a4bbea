"""Implements the loop and the rewards of Visual-ARFT's public code, for ``compat="arft"``.

The loop rebuilds one prompt every turn, which contains all results. The faults of the public code
that show one item's image or answer to another are not repeated.

Turns are compared with the sample's steps by position: turn i with step i, as in the training
rows of the public code, each of which is one step.

===========  ==============================================  ====================================
step         accuracy                                        form, read from the text alone
===========  ==============================================  ====================================
``problem``  1 for the right labels; 0.5 if one of two       a thought and a set of labels in
             problems is a rotation and only it is named     single quotes
``code``     0.9                                             a thought and a fence in ``<code>``
``answer``   F1 of sets of words                             a thought and an answer
===========  ==============================================  ====================================

A turn that opens the tag of another step has accuracy 0; one that opens a tag twice has form 0.
Steps have equal weights, because the public code trains on single steps: three steps get up to 5.9.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from visenv.grammar import ToolCall
from visenv.grammar.tags import TagGrammar
from visenv.rebuilt_prompt import RebuiltPrompt, SilentResults
from visenv.types import EventLog, Image, Message, Part, Sample, ToolCalled, TurnTaken

from . import prompts
from .base import ArftEnv
from .coding.ground_truth import CodingTruth
from .rewards.qa import Compat, exact_match, token_f1
from .rewards.steps import by_turn


class SilentTags(SilentResults, TagGrammar):
    """Implements the tags of Visual-ARFT, without results."""


class RebuiltArftPrompt(RebuiltPrompt, ArftEnv):
    """Implements the loop of both environments with ``compat="arft"``.

    Every turn begins with one message: the current images, the task, and all turns so far with a
    successful call, each with its result. Any turn may use a tool, including the last one.
    """

    compat: Compat = "arft"

    @override
    def make_grammar(self) -> TagGrammar:
        return SilentTags(self.actions)

    @override
    def initial_messages(self) -> list[Message]:
        """Prepare the episode, and return the first prompt."""
        super(RebuiltPrompt, self).initial_messages()
        return super().initial_messages()

    @override
    def prompt(self) -> tuple[Part, ...]:
        images = [self.view(image) for image in self.current_images()]
        head = "\n" if images else ""
        task = prompts.task(self.preset.prompt, self.steps(), self.question())
        return (*images, f"{head}{task}{self._chain()}")

    @override
    def reject_call(self, call: ToolCall) -> str:
        return ""

    @abstractmethod
    def current_images(self) -> Sequence[Image]:
        """Return the current images."""

    def question(self) -> str:
        """Return the question of the sample."""
        return self.sample.question

    @abstractmethod
    def comment(self, call: ToolCalled) -> str:
        """Return the text that is added after a turn with a successful call."""

    def _chain(self) -> str:
        said = ""
        for events in by_turn(self.log):
            turn, *after = events
            done = [each for each in after if isinstance(each, ToolCalled) and each.ok]
            if done and isinstance(turn, TurnTaken):
                said += f"\n{turn.text}{self.comment(done[0])}"
        return said


CODE_ACCURACY = 0.9
"""Accuracy of a program in the public code; the paper says 1."""

TOP = 5.9
"""The largest possible reward."""

PUBLISHED_STEPS_SUMMARY = "Sum of the accuracies of the turns; turn i is compared with step i."
PUBLISHED_FORMAT_SUMMARY = "Number of turns that have the form of the step with the same index."

_STEPS = ("problem", "code", "answer")
_LABEL = r"'[^']+'"
_SET = re.compile(rf"\{{\s*{_LABEL}\s*(?:,\s*{_LABEL}\s*)*\}}")
_SET_BEGINS = re.compile(r"<problem>\s*\{")
_SET_ENDS = re.compile(r"\}\s*</problem>")
_FENCE = "```"
_NESTED = re.compile(r"\[[^\[\]]*\]")
_BRACKETS = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*+)\]")


def accuracy_term(log: EventLog, sample: Sample, reward: str = "f1") -> float:
    """Return the sum of the accuracies of all turns; turn i is compared with step i."""
    texts = (turn.text for turn in log.turns)
    steps = zip(texts, sample.truth_as(CodingTruth).steps, strict=False)
    return sum(accuracy(text, step, sample, reward) for text, step in steps)


def format_term(log: EventLog, sample: Sample) -> float:
    """Return the number of turns that have the form of the step with the same index."""
    texts = (turn.text for turn in log.turns)
    steps = zip(texts, sample.truth_as(CodingTruth).steps, strict=False)
    return float(sum(has_form(text, step) for text, step in steps))


def accuracy(text: str, step: str, sample: Sample, reward: str = "f1") -> float:
    """Return the accuracy of a turn for the kind `step`; takes linear time in the text's length."""
    if any(f"<{other}>" in text for other in _STEPS if other != step):
        return 0.0
    if step == "code":
        return CODE_ACCURACY
    if step == "problem":
        return problem_score(_labels(text), sorted(sample.truth_as(CodingTruth).problems))
    return answer_score(text, sample, reward)


def answer_score(text: str, sample: Sample, reward: str) -> float:
    """Return the score of a turn that answers."""
    answer = body_of(text, "answer")
    if reward == "em":
        return exact_match(answer, sample.answers, "arft")
    return token_f1(answer, sample.answers, "arft")


def problem_score(named: Sequence[str], problems: Sequence[str]) -> float:
    """Return 1 for equal sorted labels; 0.5 if only the rotation of two problems is named."""
    if list(named) == list(problems):
        return 1.0
    rotation = next((each for each in ("rotation90", "rotation180") if each in problems), None)
    return 0.5 if len(problems) == 2 and list(named) == [rotation] else 0.0


def has_form(text: str, step: str, steps: Sequence[str] = _STEPS) -> bool:
    """Return whether a turn is exactly a thought and the tag of `step`.

    Args:
        text: The text of the turn.
        step: The expected tag.
        steps: The tags that may not be opened twice.
    """
    if any(text.count(f"<{tag}>") > 1 for tag in ("think", *steps)):
        return False
    head, opened, rest = text.partition(f"<{step}>")
    thought = head.rstrip()
    closing = f"</{step}>"
    if not (
        opened
        and rest.endswith(closing)
        and thought.startswith("<think>")
        and thought[len("<think>") :].endswith("</think>")
    ):
        return False
    body = rest[: -len(closing)].strip()
    if step == "problem":
        return _SET.fullmatch(body) is not None
    if step == "code":
        return body.startswith(f"{_FENCE}python") and _FENCE in body[len(_FENCE) :]
    return True


def with_box(code: str, box: Sequence[int], size: tuple[int, int]) -> str:
    """Return the code with every two-axis slice replaced by the box, so that the harness crops.

    Args:
        code: Python code.
        box: ``[left, top, right, bottom]`` in thousandths.
        size: ``(width, height)`` of the image in pixels.
    """
    left, top, right, bottom = (
        int(edge / 1000 * size[place % 2]) for place, edge in enumerate(box)
    )

    replaced, done = "", 0
    for opening in re.finditer(r"\[", code):
        found = _BRACKETS.match(code, opening.start())
        if found and found.start() >= done and _has_two_axes(found[1]):
            replaced += f"{code[done : found.start()]}[{top}:{bottom}, {left}:{right}]"
            done = found.end()
    return replaced + code[done:]


def _has_two_axes(index: str) -> bool:
    parts = _NESTED.sub("_", index).split(":")
    return len(parts) == 3 and all(parts) and "," in parts[1][1:-1]


def body_of(text: str, tag: str) -> str:
    """Return the body of the first `tag` that is closed on its line; if none, the whole text."""
    for line in text.split("\n"):
        _, opened, rest = line.partition(f"<{tag}>")
        body, closed, _ = rest.partition(f"</{tag}>")
        if opened and closed:
            return body.strip()
    return text.strip()


def _labels(text: str) -> list[str]:
    """Return the labels in single quotes, sorted."""
    begins = _SET_BEGINS.search(text)
    ends = begins and _SET_ENDS.search(text, begins.end())
    if not (begins and ends):
        return []
    return sorted(label[1:-1] for label in re.findall(_LABEL, text[begins.end() : ends.start()]))
