"""The public code's loop: a prompt made anew every turn, which shows nothing else of a result.

Of its faults, those that let one item see another's image or answer are not repeated.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from visenv.grammar import Call
from visenv.grammar.tags import TagGrammar
from visenv.types import Image, Message, Part, ToolCalled, TurnRequest, TurnTaken

from .. import prompts
from ..base import ArftEnv
from ..rewards.qa import Compat
from ..rewards.steps import by_turn


class SilentTags(TagGrammar):
    """Shows nothing of a result: what there is to see stands in the prompt that follows."""

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Nothing."""
        return ()

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Nothing."""
        return ()


class RebuiltPrompt(ArftEnv):
    """Base of the two environments with ``compat="arft"``.

    Every turn begins with one message: the images as they are now, the task, and all turns so far
    that did something, each with what came of it. Any turn may use a tool, the last one too.
    """

    compat: Compat = "arft"

    def make_grammar(self) -> TagGrammar:
        """Silent."""
        return SilentTags(self.actions)

    def initial_messages(self) -> list[Message]:
        """The first of the prompts."""
        super().initial_messages()
        return [Message("user", self.turn_notice())]

    def turn_request(self) -> TurnRequest:
        """A free turn on the new prompt alone."""
        return super().turn_request()._replace(context="replace")

    def turn_notice(self) -> tuple[Part, ...]:
        """The prompt of the coming turn."""
        images = [self.view(image) for image in self.current_images()]
        head = "\n" if images else ""
        task = prompts.task(self.preset.prompt, self.steps(), self.question())
        return (*images, f"{head}{task}{self._chain()}")

    def reject_call(self, call: Call) -> str:
        """None."""
        return ""

    @abstractmethod
    def current_images(self) -> Sequence[Image]:
        """The images as they are now."""

    def question(self) -> str:
        """What is asked."""
        return self.sample.question

    @abstractmethod
    def comment(self, call: ToolCalled) -> str:
        """What is added to a turn that did something."""

    def _chain(self) -> str:
        said = ""
        for events in by_turn(self.log):
            turn, *after = events
            done = [each for each in after if isinstance(each, ToolCalled) and each.ok]
            if done and isinstance(turn, TurnTaken):
                said += f"\n{turn.text}{self.comment(done[0])}"
        return said
