"""Defines the options of prompts and observations that do not belong to a preset."""

from __future__ import annotations

from typing import Literal, NamedTuple

Compat = Literal["embodiedbench"] | None


class EmbodiedOptions(NamedTuple):
    """Holds options of prompts and observations.

    The fields have the names and the meaning of the arguments of `visenv.envs.embodied.make_house`.
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
