"""Options of prompts and observations, which no preset sets."""

from __future__ import annotations

from typing import Literal, NamedTuple

Compat = Literal["embodiedbench"] | None


class EmbodiedOptions(NamedTuple):
    """Holds what a user may change about prompts and observations.

    Attributes:
        n_shots: Examples in the prompt, 0 to 10 (EmbodiedBench uses 10).
        examples: A file of examples, a JSON list of texts; None lets the planner write them.
        feedback: Whether the history contains the result of each action.
        chat_history: Whether the conversation goes on instead of being rebuilt every turn.
        past_images: Earlier frames that are shown beside the present one.
        language_only: Whether no frame is shown, and a turn describes none.
        boxes: Whether frames have boxes with names around all visible objects.
        blind: Whether frames are gray: a control.
        compat: ``"embodiedbench"`` puts the image first, ignores names of actions, hides errors of
            replies from the policy, and records progress 0 when a bad or empty plan ends the
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
