"""A prompt that is rebuilt every turn: the policy reads it alone, without the turns before.

A task that derives from `RebuiltPrompt` writes one hook, `prompt`. Each turn then starts a new
context (``TurnRequest(context="replace")``, one `Segment` per turn) whose only message is that
prompt. `prompt` should put what never changes (rules, actions, examples) first and what changes
(history, images) last: the update then forwards the common beginning of all turns, and of all
members of a group, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from visenv.env import VisEnv
from visenv.types import Message, Part, TurnRequest


class SilentResults:
    """A mixin for grammars that shows no result and no error: the next prompt holds both."""

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return nothing."""
        return ()

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return nothing."""
        return ()


class RebuiltPrompt(VisEnv):
    """Base of environments whose prompt is rebuilt every turn.

    The grammar must show nothing of results and errors (`SilentResults`), so that the prompt is the
    only message of a turn. Derive from it before the class that has the task's other hooks.
    """

    @abstractmethod
    def prompt(self) -> tuple[Part, ...]:
        """Return the whole prompt of turn `self.turn`."""

    @override
    def initial_messages(self) -> list[Message]:
        """Return the first prompt as a message."""
        return [Message("user", self.prompt())]

    @override
    def turn_request(self) -> TurnRequest:
        """Return the request of the task, for a turn on the new prompt alone."""
        return super().turn_request()._replace(context="replace")

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the prompt of the coming turn."""
        return self.prompt()
