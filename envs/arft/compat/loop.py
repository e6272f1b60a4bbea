"""The public code's loop: a prompt that is rebuilt every turn and alone shows results.

The faults of the public code that let one item see another's image or answer are not repeated.
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
    """The tags of Visual-ARFT, without results."""


class RebuiltArftPrompt(RebuiltPrompt, ArftEnv):
    """Base of the two environments with ``compat="arft"``.

    Every turn begins with one message: the images as they are now, the task, and all turns so far
    that did something, each with what came of it. Any turn may use a tool, the last one too.
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
        """Return the images as they are now."""

    def question(self) -> str:
        """Return the question of the sample."""
        return self.sample.question

    @abstractmethod
    def comment(self, call: ToolCalled) -> str:
        """Return what is added to a turn with a call that was carried out."""

    def _chain(self) -> str:
        said = ""
        for events in by_turn(self.log):
            turn, *after = events
            done = [each for each in after if isinstance(each, ToolCalled) and each.ok]
            if done and isinstance(turn, TurnTaken):
                said += f"\n{turn.text}{self.comment(done[0])}"
        return said
