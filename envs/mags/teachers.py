"""Defines the teacher of MagsZoom, which names too many boxes and draws them beside the objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import GIVING_UP, AimingTeacher

from .boxes import MOST_BOXES
from .evidence import covers, evidence_of
from .ground_truth import MagsTruth
from .rewards import COUNTING
from .tools import INPUT_IMAGE

if TYPE_CHECKING:
    import numpy as np

    from .env import MagsZoom


@dataclass(frozen=True)
class BoxesBeside(AimingTeacher["MagsZoom"]):
    """Names too many boxes, beside the objects, and answers from the content of the crops.

    Each box of the oracle is moved by an error of its own, in sides of the box. The further boxes
    have the size of the first one and random positions. The teacher counts the objects that a crop
    covers; it answers another question only if the crops cover all evidence, otherwise it gives up.

    Attributes:
        extra: The number of further boxes at strength 1.

    Raises:
        ConfigurationError: If `extra` is negative.
    """

    summary: ClassVar[str] = (
        "Names boxes beside the objects, by a constant offset and by noise, and one box too many. "
        "It counts only the objects in its crops, and gives up on another question if its crops do "
        "not contain the object."
    )
    offset: tuple[float, float] = (0.175, -0.05)
    noise: float = 0.1
    extra: int = 1

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.extra < 0:
            raise ConfigurationError(f"extra must be 0 or more, got {self.extra!r}.")

    @override
    def turn(self, env: MagsZoom, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is not None:
            return turn._replace(answer=_answer(env, turn.answer))
        (call,) = turn.calls
        boxes = self._boxes(env, call.arguments["boxes"], rng)
        return turn._replace(calls=(ToolCall(call.name, {"boxes": boxes}),))

    def _boxes(
        self, env: MagsZoom, boxes: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> list[list[int]]:
        """Return the moved boxes, then the further ones."""
        size, grid = env.store.images[INPUT_IMAGE].size, env.box_grid
        errors = [self.error(rng) for _ in boxes]
        moved = [_moved(box, error, size, grid) for box, error in zip(boxes, errors, strict=True)]
        across, down = _sides(boxes[0])
        for _ in range(round(self.strength * self.extra)):
            left = grid * int(rng.integers((size[0] - across) // grid + 1))
            top = grid * int(rng.integers((size[1] - down) // grid + 1))
            moved.append([left, top, left + across, top + down])
        return moved[:MOST_BOXES]


def _sides(box: Sequence[int]) -> tuple[int, int]:
    return box[2] - box[0], box[3] - box[1]


def _moved(
    box: Sequence[int], error: Sequence[float], size: tuple[int, int], grid: int
) -> list[int]:
    """Return a box that is moved by an error, in sides of the box.

    A box that would leave the image is moved in the other direction, at most to the edge.
    """
    steps: list[int] = []
    for axis, (by, side) in enumerate(zip(error, _sides(box), strict=True)):
        step, low, high = grid * round(by * side / grid), -box[axis], size[axis] - box[axis + 2]
        steps.append(min(max(step if low <= step <= high else -step, low), high))
    return [edge + steps[place % 2] for place, edge in enumerate(box)]


def _answer(env: MagsZoom, right: str) -> str:
    """Return the answer of a player that knows the objects in its crops, and no others."""
    truth = env.sample.ground_truth
    if not isinstance(truth, MagsTruth):
        return right  # a row of a data set, whose objects are not known
    crops = env.crops()

    def seen(box: Sequence[float]) -> bool:
        return any(covers(crop, box) for crop in crops)

    if env.sample.kind == COUNTING:
        return str(sum(map(seen, truth.target_boxes)))
    return right if all(map(seen, evidence_of(env.sample))) else GIVING_UP
