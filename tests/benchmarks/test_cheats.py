"""Tests the table of cheats: no policy that ignores what a tool shows gains more than 0.02."""

from __future__ import annotations

import pytest

from benchmarks import cheats
from benchmarks.cheat_policies import FAMILIES
from tests.environments import few

TITLES = ["MagsZoom, counting", "ArgosVideo", "House, tiny", "ArftSearch", "ZoomVQA"]
TITLES += [family.title for family in FAMILIES if family.title not in TITLES]


@pytest.mark.slow
@pytest.mark.parametrize("title", few(TITLES, 5))
def test_no_cheat_gains_anything_and_honest_play_earns_the_most(title: str) -> None:
    rows = list(cheats.rows(2, (title,), published=False))
    assert cheats.faults(rows) == []
    honest, guess = rows[:2]
    family = next(each for each in FAMILIES if each.title == title)
    assert (honest.kind, guess.kind) == ("honest", "guess")
    assert honest.reward == pytest.approx(family.top)
    assert len(rows) >= 4


@pytest.mark.slow
def test_sentence_that_states_the_right_answer_is_paid_as_a_conclusion_in_argos() -> None:
    """Check that accuracy and reasoning are 1 without points, and the spatial term 0: 2/3."""
    rows = list(cheats.rows(2, ("ArgosImage",), published=False))
    (row,) = (row for row in rows if row.policy == "conclusion without points")
    assert row.reward == pytest.approx(2 / 3)


@pytest.mark.slow
def test_published_rules_keep_their_loopholes_so_that_the_table_can_fail() -> None:
    rows = list(cheats.rows(2, ("ZoomVQA",)))
    assert max(row.published or 0 for row in rows if row.kind == "cheat") > cheats.LARGEST_GAIN
    worse = [rows[0], *(row._replace(gain=row.published or 0) for row in rows[1:])]
    assert any("gains" in each for each in cheats.faults(worse))
    paid = [rows[0], rows[1]._replace(reward=rows[0].reward)]
    assert cheats.faults(paid) == ["ZoomVQA: 'guess at once' earns as much as honest play"]
    assert "| ZoomVQA | **honest play** | 2.100 |  |  |" in cheats.table(rows)
