"""Tests the questions of the procedural worlds: the answers are in the image, read or computed."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.data.source import world_version
from visenv.envs.arft.coding.world.canvas import BOARD, EDGE, PAPER, SIDE, TextBox
from visenv.envs.arft.coding.world.entries import (
    LAYOUTS,
    PictureEntries,
    rewrite_entries,
    write_entries,
)
from visenv.envs.arft.coding.world.flags import FlagPictures
from visenv.envs.arft.coding.world.kinds import CALIBRATED, apply, draw
from visenv.envs.arft.coding.world.pictures import draw_picture
from visenv.envs.arft.coding.world.questions import WORLDS, TextPictures, procedural
from visenv.envs.arft.tiny_images import COLORS
from visenv.errors import UnknownNameError
from visenv.worlds.draws import is_held_out_scene


def entries_of(layout: str, wording: str = "", seed: int = 0) -> PictureEntries:
    """Return a text of a layout whose question contains these words."""
    rng = np.random.default_rng(seed)
    while True:
        entries = write_entries(rng, held_out=False)
        if entries.layout == layout and wording in entries.question:
            return entries


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_picture_is_square_and_its_answer_stands_at_its_place(layout: str, small: bool) -> None:
    pictures = TextPictures()
    entries = entries_of(layout)
    sample = pictures.draw(np.random.default_rng(1), entries, small)
    assert sample.images[0].size == (SIDE, SIDE)
    assert sample.answers == (entries.answer,)
    assert sample.answers[0] in sample.ground_truth.options
    assert len(set(sample.ground_truth.options)) == 4
    place = TextBox(*sample.ground_truth.target_box)
    assert min(place.left, place.top) >= EDGE
    assert max(place.right, place.bottom) <= SIDE - EDGE
    read = pictures.share_read(sample, sample.images[0].pixels, place, native=True)
    assert small or read == 1
    assert pictures.draw(np.random.default_rng(1), entries, small) == sample


def test_widest_texts_fit_into_every_layout() -> None:
    """Check the places of all texts in the picture with the widest words of each list."""
    for layout in LAYOUTS:
        entries = entries_of(layout)
        columns = tuple(tuple(_WIDE) for _ in entries.columns)
        names = _WIDE if layout in ("board", "map") else entries.names
        for row in range(4):
            wide = entries._replace(names=tuple(names), row=row)
            if layout in ("page", "signs", "label"):
                wide = wide._replace(values=columns)
            _, place = draw_picture(np.random.default_rng(row), wide, False)
            assert min(place.left, place.top) >= EDGE, layout
            assert max(place.right, place.bottom) <= SIDE - EDGE, layout


_WIDE = ("HUGO NOVAK", "KARL NOVAK", "SNOW WELL", "WEST WOOD")


def test_answers_of_wordings_by_hand() -> None:
    chart = entries_of("chart", "longest")._replace(values=(("120", "980", "450", "770"),))
    names = ("CORN", "OATS", "RYE", "RICE")
    # the longest bar is the second one, the shortest the first one
    longest, shortest = (
        wording.row(np.random.default_rng(0), chart.values[0])
        for wording in LAYOUTS["chart"].wordings
        if "longest" in wording.text or "shortest" in wording.text
    )
    assert (names[longest], names[shortest]) == ("OATS", "CORN")
    receipt = entries_of("receipt", "total")
    prices = [round(100 * float(price)) for price in receipt.values[0]]
    assert sum(prices[:3]) == prices[3] == round(100 * float(receipt.answer))
    board = entries_of("board", "Where does the train")
    place = board.columns.index("TIME")
    time = board.question.split("at ")[1].split(" go")[0]
    assert board.answer == board.names[board.values[place].index(time)]
    table = entries_of("table", "Which row")
    assert table.answer in table.names


@given(st.integers(0, 2**32), st.booleans())
def test_text_that_is_written_again_keeps_its_question_and_its_division(
    seed: int, held_out: bool
) -> None:
    rng = np.random.default_rng(seed)
    first = write_entries(rng, held_out)
    second = rewrite_entries(rng, first, held_out)
    assert first.question == second.question
    for entries in (first, second):
        drawn = (entries.layout, entries.names, entries.columns, entries.values)
        assert is_held_out_scene(drawn) is held_out
        assert len({*entries.options}) == 4
        assert entries.answer not in entries.question


def test_five_thousand_seeds_have_a_thousand_questions() -> None:
    seeds = range(5_000)
    drawn = [write_entries(np.random.default_rng(seed), held_out=False) for seed in seeds]
    assert len({entries.question for entries in drawn}) >= 1_000
    assert Counter(entries.layout for entries in drawn).keys() == LAYOUTS.keys()


@pytest.mark.parametrize(("ground", "ink"), [(PAPER, (50, 86)), (BOARD, PAPER)])
def test_shades_of_grounds_vanish_in_calibrated_light(
    ground: tuple[int, int], ink: tuple[int, int]
) -> None:
    """Check that the ground has one level, and that ink and ground differ by 1 to 3 levels."""
    rng = np.random.default_rng(0)
    for name in ("dark", "overexposure"):
        for share in np.linspace(0, 1, 21):
            distortion = draw(name, rng, CALIBRATED[frozenset({name})][name], float(share))
            levels = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
            shown = apply(levels, distortion)[0, :, 0].astype(int)
            grounds = set(shown[ground[0] : ground[1] + 1].tolist())
            inks = shown[ink[0] : ink[1] + 1]
            assert len(grounds) == 1, (name, share)
            gaps = np.abs(inks - grounds.pop())
            assert gaps.min() >= 1
            assert gaps.max() <= 3


@given(st.integers(0, 2**32))
def test_flag_has_the_colors_asked_for(seed: int) -> None:
    flags, rng = FlagPictures(), np.random.default_rng(seed)
    sample = flags.draw(rng, flags.write(rng))
    pixels = sample.images[0].pixels.astype(int)
    assert pixels.shape == (96, 96, 3)
    distance = {
        name: np.abs(pixels - np.array(color)).max(axis=2) <= 6 for name, color in COLORS.items()
    }
    rows = {name: np.flatnonzero(near.any(axis=1)) for name, near in distance.items() if near.any()}
    assert len(rows) == 2
    upper, lower = sorted(rows, key=lambda name: int(rows[name][0]))
    assert rows[upper][-1] < rows[lower][0]
    answer = upper if "upper band" in sample.question else lower
    assert sample.answers == (f"{upper} {lower}" if "bands" in sample.question else answer,)
    assert (len(rows[upper]), len(rows[lower])) == (24, 24)


@pytest.mark.slow
def test_tiny_world_has_three_problems_and_each_answer() -> None:
    world = procedural("tiny")
    samples = [world.sample(np.random.default_rng(seed)) for seed in range(300)]
    assert {sample.kind for sample in samples} == {"rotation180", "dark", "none"}
    answers = {sample.answers[0] for sample in samples}
    assert {answer for answer in answers if " " not in answer} == set(COLORS)
    assert all(
        len(set(answer.split()) & set(COLORS)) == answer.count(" ") + 1 for answer in answers
    )
    assert {max(sample.images[0].size) for sample in samples} == {96}


def test_group_shares_one_sample() -> None:
    worlds = procedural("tiny"), procedural("tiny")
    first, second = (world.sample(np.random.default_rng(4)) for world in worlds)
    assert first is second


def test_earlier_episodes_of_texts_are_those_of_another_world() -> None:
    versions = [world_version(procedural(name)) for name in WORLDS]
    # Flags did not change when texts got eight layouts.
    assert dict(zip(WORLDS, versions, strict=True)) == {"default": 3, "photographs": 3, "tiny": 2}


@pytest.mark.skipif(
    not all(map(find_spec, ("skimage", "sklearn", "matplotlib"))),
    reason="needs the photographs of the extra test",
)
def test_photographs_are_surfaces_of_the_same_texts() -> None:
    plain, photographed = (TextPictures(photographs) for photographs in (False, True))
    entries = entries_of("receipt")
    samples = [
        each.draw(np.random.default_rng(2), entries, False) for each in (plain, photographed)
    ]
    assert samples[0].question == samples[1].question
    assert (samples[0].images[0].pixels != samples[1].images[0].pixels).mean() > 0.3


def test_unknown_world_is_named() -> None:
    with pytest.raises(UnknownNameError, match="tiny"):
        procedural("tini")
