"""Tests images: they show the name or the look, deterministically, and no facts."""

from __future__ import annotations

import numpy as np
import PIL.Image
import PIL.ImageDraw
import pytest

from visenv.envs.arft.search.world import WorldEngine
from visenv.envs.arft.search.world.catalog import KINDS
from visenv.envs.arft.search.world.names import CHARGES, COLORS, HEADGEAR
from visenv.envs.arft.search.world.portraits import (
    SIZE,
    SMALLEST,
    _broken,
    _largest,
    draw_bust,
    draw_charge,
    draw_lettering,
    draw_looks,
    draw_named,
)
from visenv.envs.arft.search.world.society import Entity, EntityLook
from visenv.types import Pixels

ENTITIES: dict[str, Entity] = WorldEngine("default", 40).world


def named(entity: Entity, seed: int = 0) -> Pixels:
    return draw_named(np.random.default_rng(seed), entity)


def looks(entity: Entity, seed: int = 0) -> Pixels:
    return draw_looks(np.random.default_rng(seed), entity)


def of_kind(kind: str) -> list[Entity]:
    return [entity for entity in ENTITIES.values() if entity.kind == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_name_is_all_that_a_sign_shows(kind: str) -> None:
    one, other = of_kind(kind)[:2]
    pixels = named(one)
    assert pixels.shape == (SIZE[1], SIZE[0], 3)
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, named(one._replace(told=other.told, look=other.look)))
    assert not np.array_equal(pixels, named(one._replace(name=other.name)))
    assert not np.array_equal(pixels, named(one, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_names_are_read_at_a_size_that_fits(kind: str) -> None:
    """Check that the images of two similar names differ by more than noise."""
    for one, double in zip(of_kind(kind)[1::3], of_kind(kind)[2::3], strict=True):
        apart = np.abs(named(one).astype(int) - named(double)).max(axis=2) > 60
        assert apart.sum() > 30, (one.name, double.name)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].looks])
def test_look_is_all_that_an_image_without_a_name_shows(kind: str) -> None:
    one, other = of_kind(kind)[:2]
    pixels = looks(one)
    assert np.array_equal(pixels, looks(one._replace(name=other.name, told=other.told)))
    assert not np.array_equal(pixels, looks(one._replace(look=other.look)))
    assert one.look is not None
    for color in (one.look.ink, one.look.ground):
        away = np.abs(pixels.astype(int) - COLORS[color]).max(axis=2)
        assert (away <= 4).sum() > 1500, f"{color} is seen on {one.look}"


def test_figures_are_all_different() -> None:
    drawn = set()
    for charge in CHARGES:
        image = PIL.Image.new("RGB", (100, 100), "white")
        draw_charge(PIL.ImageDraw.Draw(image), (50, 50), 40, charge, (0, 0, 0), (255, 255, 255))
        inked = (np.asarray(image) == 0).all(axis=2)
        assert 500 < inked.sum() < 5100  # of the 8,100 px of its square
        assert abs(np.nonzero(inked)[1].mean() - 50) < 12
        drawn.add(inked.tobytes())
    for headgear in HEADGEAR:
        image = PIL.Image.new("RGB", (260, 300), "white")
        draw_bust(PIL.ImageDraw.Draw(image), (130, 140), headgear, (0, 0, 0), (0, 255, 0))
        pixels = np.asarray(image)
        assert ((pixels == 0).all(axis=2)).sum() > 1000
        drawn.add(pixels.tobytes())
    assert len(drawn) == len(CHARGES) + len(HEADGEAR)


def test_colors_in_each_place_can_be_distinguished() -> None:
    pictures = [
        looks(Entity(kind, "x", EntityLook(ink, charge, ground), {}))
        for kind, charge in (("city", "star"), ("company", "ring"), ("person", "hat"))
        for ink, ground in (("red", "orange"), ("orange", "yellow"), ("white", "yellow"))
    ]
    for place, one in enumerate(pictures):
        for other in pictures[:place]:
            assert (np.abs(one.astype(int) - other).max(axis=2) > 30).sum() > 800


# ---------------------------------------------------------------------------- lettering


def test_texts_are_broken_at_any_blanks() -> None:
    assert _broken("a b c") == ["a b c", "a\nb c", "a b\nc", "a\nb\nc"]


def test_letters_are_as_large_as_there_is_room_for() -> None:
    draw = PIL.ImageDraw.Draw(PIL.Image.new("RGB", (400, 400)))
    wide, written = _largest(draw, "The Tears of Dalicia", 380, 60)
    tall, broken = _largest(draw, "The Tears of Dalicia", 130, 300)
    assert written == "The Tears of Dalicia"
    assert broken == "The\nTears\nof\nDalicia"
    assert wide > SMALLEST
    assert tall > SMALLEST
    assert _largest(draw, "x" * 200, 50, 20) == (SMALLEST, "x" * 200)


def test_letters_stay_in_their_box() -> None:
    image = PIL.Image.new("RGB", (300, 200), "white")
    box = (40, 30, 260, 170)
    draw_lettering(PIL.ImageDraw.Draw(image), box, "Restless Lantern", (0, 0, 0))
    rows, columns = np.nonzero((np.asarray(image) < 128).all(axis=2))
    assert len(rows) > 300
    assert 30 <= rows.min() <= rows.max() < 170
    assert 40 <= columns.min() <= columns.max() < 260
