"""Implements the public code's loop: one prompt, rebuilt every turn, contains all results.

The faults of the public code that show one item's image or answer to another are not repeated.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from visenv.grammar import ToolCall
from visenv.grammar.tags import TagGrammar
from visenv.rebuilt_prompt import RebuiltPrompt, SilentResults
from visenv.types import Image, Message, Part, ToolCalled, TurnTaken

from .. import prompts
from ..base import ArftEnv
from ..rewards.qa import Compat
from ..rewards.steps import by_turn


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
