"""Defines the options of prompts and observations that do not belong to a preset."""

from __future__ import annotations

from typing import Literal, NamedTuple

Compat = Literal["embodiedbench"] | None


class EmbodiedOptions(NamedTuple):
    """Holds options of prompts and observations.

    Attributes:
        n_shots: Number of examples in the prompt, 0 to 10 (EmbodiedBench uses 10).
        examples: A file of examples, a JSON list of texts; None lets the planner write them.
        feedback: Whether the history contains the result of each action.
        chat_history: Whether the conversation is continued instead of rebuilt every turn.
        past_images: Number of earlier frames that are shown with the current one.
        language_only: Whether no frame is shown, and turns contain no description of one.
        boxes: Whether frames have boxes with names around all visible objects.
        blind: Whether frames are gray, as a control.
        compat: ``"embodiedbench"`` puts the image first, ignores names of actions, hides errors of
            replies from the policy, and records progress 0 if an invalid or empty plan ends the
            episode.
    """

    n_shots: int = 0
    examples: str | None = None
    feedback: bool = True
    chat_history: bool = False
    past_images: int = 0
    language_only: bool = False
    boxes: bool = False
    blind: bool = False
    compat: Compat = None
