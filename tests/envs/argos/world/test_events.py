"""Tests which event a description names, and which spans and frames match it."""

from __future__ import annotations

import pytest

from visenv.envs.argos.world.events import WorldEvent, happens, supports

ENTERS = WorldEvent(kind="enters", names=("red ball",), first=4, last=5)
MEETS = WorldEvent(kind="meets", names=("red ball", "blue cube"), first=2, last=5)
TURNS = WorldEvent(kind="turns", names=("green cone",), first=6, last=7, color="blue")
STAYS = WorldEvent(kind="stays", names=("red ball",), first=2, last=9)


@pytest.mark.parametrize(
    ("event", "description"),
    [
        (ENTERS, "the red ball enters"),
        (ENTERS, "A red sphere appears"),
        (MEETS, "the red ball meets the blue cube"),
        (MEETS, "the blue box and the red ball touch"),
        (TURNS, "the green cone turns blue"),
        (TURNS, "the cone turns from green to blue"),
        (TURNS, "the cone turns blue from green"),
        (STAYS, "the red ball stays visible"),
    ],
)
def test_description_names_an_event(event: WorldEvent, description: str) -> None:
    assert supports([event], event.first, event.last, description)


@pytest.mark.parametrize(
    ("event", "description"),
    [
        (ENTERS, "the ball enters"),
        (ENTERS, "the red ball leaves"),
        (ENTERS, "the red ball enters and leaves"),
        (ENTERS, "the red or blue ball enters"),
        (ENTERS, "the red ball or cube enters"),
        (ENTERS, "a red ball, cube, cone or diamond enters"),
        (ENTERS, "the red ball never enters"),
        (ENTERS, "the red ball does not enter"),
        (ENTERS, "the red ball doesn't enter"),
        (ENTERS, "no red ball enters"),
        (MEETS, "the red ball meets the cube"),
        (MEETS, "the red ball meets the blue cube and the blue cone"),
        (TURNS, "the green cone turns"),
        (TURNS, "the blue cone turns green"),
        (TURNS, "the cone turns from blue to green"),
        (STAYS, "the red ball is not visible"),
    ],
)
def test_description_of_another_event_does_not_match(event: WorldEvent, description: str) -> None:
    assert not supports([event], event.first, event.last, description)
    assert not happens([event], event.first, description)


@pytest.mark.parametrize(
    ("first", "last", "fits"),
    [
        (2, 5, True),
        (2, 3, True),  # IoU 2 / 4
        (0, 5, True),  # IoU 4 / 6
        (3, 3, False),  # one frame of four, IoU 1 / 4
        (0, 9, False),  # IoU 4 / 10
        (6, 9, False),
    ],
)
def test_span_needs_an_overlap_of_half(first: int, last: int, fits: bool) -> None:
    assert supports([MEETS], first, last, "the red ball meets the blue cube") is fits


def test_frame_needs_to_lie_in_the_event() -> None:
    found = [happens([MEETS], frame, "the red ball meets the blue cube") for frame in range(8)]
    assert found == [False, False, True, True, True, True, False, False]
    assert not happens([STAYS], 5, "the red ball stays visible")
