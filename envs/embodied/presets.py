"""Defines presets and options of the embodied environments: house, frames, prompt and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from .prompts import PromptStyle
from .world.items import Split
from .world.tasks import TaskOptions

Compat = Literal["embodiedbench"] | None

TINY_FIXTURES = ("CoffeeTable", "Dresser", "SideTable", "Desk", "Shelf")
"""The fixtures of the only room of the preset ``tiny``."""

TINY_TYPES = ("AlarmClock", "BasketBall", "Book", "CD")
"""The types of objects that its tasks are about, which are large and of one color. They precede all
fixtures in the list of actions, so that an action has the same number in each task."""

TINY_COLORS = ("red", "blue", "green", "yellow")
"""The colors of its four look-alikes. The object of the task is always the red one, because a tiny
model does not learn to compare two colors in minutes."""


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


@dataclass(frozen=True, kw_only=True)
class EmbodiedPreset:
    """Holds the fields of a preset.

    Attributes:
        prompt: ``"full"`` or ``"brief"``.
        side: Side of a frame in pixels, 96 to 500.
        smoothing: Whether the edges in frames are smoothed (``"msaa"``).
        rooms: Number of rooms of a house; None draws 3 to 6.
        kinds: Number of types of objects in a house.
        objects: Number of further objects.
        lookalikes: Number of objects that a reference by look chooses from.
        furniture: ``"rooms"`` or ``"tiny"``: one room with five fixtures.
        steps: Maximum number of actions of an episode.
        invalid_actions: Number of invalid actions and replies that ends an episode.
        plan_actions: Maximum number of actions of one plan.
        text_characters: Maximum length of each text of a turn under constrained decoding.
        oracle: ``"plan"`` writes the whole plan; ``"search"`` first looks at one object after
            another, as a player without knowledge of the house must.
    """

    prompt: PromptStyle = "full"
    side: int = 224
    smoothing: Literal["none", "msaa"] = "none"
    rooms: int | None = None
    kinds: int = 36
    objects: int = 10
    lookalikes: int = 4
    furniture: Literal["rooms", "tiny"] = "rooms"
    steps: int = 30
    invalid_actions: int = 10
    plan_actions: int = 20
    text_characters: int = 600
    oracle: Literal["plan", "search"] = "plan"

    def task_options(self, dialect: str, subset: str, split: Split) -> TaskOptions:
        """Return the options from which tasks are drawn."""
        if self.furniture == "rooms":
            return TaskOptions(
                dialect=dialect,
                subset=subset,
                split=split,
                rooms=self.rooms or 0,
                kinds=self.kinds,
                extra=self.objects,
                lookalikes=self.lookalikes,
            )
        return TaskOptions(
            dialect=dialect,
            subset="visual_appearance" if subset == "all" else subset,
            split=split,
            rooms=1,
            kinds=self.kinds,
            extra=self.objects,
            lookalikes=self.lookalikes,
            fixtures=TINY_FIXTURES,
            tasks=("pick_and_place" if dialect == "alfred" else "rearrange",),
            longest_plan=6,
            types=TINY_TYPES,
            attributes=("color",),
            colors=TINY_COLORS,
            apart=True,
        )


PRESETS = {
    "house": EmbodiedPreset(),
    "embodiedbench": EmbodiedPreset(side=500, smoothing="msaa"),
    "tiny": EmbodiedPreset(
        prompt="brief",
        side=96,
        kinds=1,
        objects=0,
        lookalikes=4,
        furniture="tiny",
        steps=12,
        invalid_actions=4,
        plan_actions=6,
        text_characters=60,
        oracle="search",
    ),
}
"""``house`` for training, ``embodiedbench`` with its 500 px frames, ``tiny`` for a very small
model: one room, frames of 96 px, at most 24 actions, plans of at most 6 actions, a short prompt."""
