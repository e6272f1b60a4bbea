"""Defines a primitive of a body, and its MuJoCo XML. Lengths are in meters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Color = Sequence[float]

DARK, LIGHT = (0.10, 0.10, 0.11), (0.90, 0.90, 0.88)


class Geom(NamedTuple):
    """Describes one primitive.

    Attributes:
        shape: The MuJoCo type.
        size: Half sizes, or radius and half height.
        at: The center.
        color: RGB, 0 to 1.
        material: ``""``, ``"shiny"``, ``"glass"`` or ``"glow"``.
        state: The state in which it is visible: ``""`` for always.
        turn: Rotation about x, y and z in degrees.
    """

    shape: str
    size: Sequence[float]
    at: Sequence[float]
    color: Color
    material: str = ""
    state: str = ""
    turn: Sequence[float] = (0.0, 0.0, 0.0)

    def xml(self, name: str, group: int) -> str:
        """Return the XML element."""
        material = f' material="{self.material}"' if self.material else ""
        turn = f' euler="{_numbers(self.turn)}"' if any(self.turn) else ""
        alpha = 0.55 if self.material == "glass" else 1.0
        return (
            f'<geom name="{name}" type="{self.shape}" size="{_numbers(self.size)}" '
            f'pos="{_numbers(self.at)}" rgba="{_numbers((*self.color, alpha))}" '
            f'group="{group}"{material}{turn}/>'
        )


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.5g}" for value in values)


def box(
    low: Sequence[float], high: Sequence[float], color: Color, material: str = "", state: str = ""
) -> Geom:
    """Return a box from one corner to the opposite one."""
    half = [max((top - bottom) / 2, 1e-3) for bottom, top in zip(low, high, strict=True)]
    middle = [(bottom + top) / 2 for bottom, top in zip(low, high, strict=True)]
    return Geom("box", half, middle, color, material, state)
