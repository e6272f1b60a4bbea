"""Defines environments that build a new prompt every turn, which contains no earlier turns.

A task that derives from `RebuiltPrompt` implements one hook, `prompt`. Each turn then starts a new
context (``TurnRequest(context="replace")``, one `Segment` per turn) whose only message is that
prompt. `prompt` should put the constant content (rules, actions, examples) first and the changing
content (history, images) last. The update then computes the common prefix of all turns, and of all
members of a group, only once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from visenv.env import VisEnv
from visenv.types import Message, Part, TurnRequest


class SilentResults:
    """Makes a grammar show no results and no errors, because the next prompt contains both."""

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        """Return an empty tuple, because the next prompt contains the results."""
        return ()

    def render_error(self, message: str) -> tuple[Part, ...]:
        """Return an empty tuple, because the next prompt contains the error message."""
        return ()


class RebuiltPrompt(VisEnv):
    """Rebuilds the prompt every turn; a base class of environments.

    The grammar must not show results and errors (`SilentResults`), so that the prompt is the only
    message of a turn. A task must list this class before the class that defines its other hooks.
    """

    @abstractmethod
    def prompt(self) -> tuple[Part, ...]:
        """Return the complete prompt of turn `self.turn`."""

    @override
    def initial_messages(self) -> list[Message]:
        """Return the first prompt as a message."""
        return [Message("user", self.prompt())]

    @override
    def turn_request(self) -> TurnRequest:
        """Return the task's request, for a turn that sees only the new prompt."""
        return super().turn_request()._replace(context="replace")

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the prompt of the next turn."""
        return self.prompt()
