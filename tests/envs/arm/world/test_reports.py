"""Tests ReportsWorld and its library: samples, balance, names, caches."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from visenv.data.source import IndexedSource, ProceduralSource
from visenv.documents import Document
from visenv.envs.arm.world.reports import PRESETS, ReportsWorld
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.reports import ReportsLibrary

pytestmark = pytest.mark.component("pypdfium2", "reportlab")


def samples(count: int, preset: str = "default", **options: Any) -> list[Sample]:
    world, rng = ReportsWorld(preset, **options), np.random.default_rng(11)
    return [world.sample(rng) for _ in range(count)]


def test_reports_world_is_a_procedural_source() -> None:
    world = ReportsWorld()
    assert isinstance(world, ProceduralSource)
    assert not isinstance(world, IndexedSource)


@pytest.mark.parametrize("preset", PRESETS)
def test_reports_world_is_seeded(preset: str) -> None:
    world = ReportsWorld(preset)
    world.sample(np.random.default_rng(9))  # earlier samples do not influence later ones
    one = world.sample(np.random.default_rng(3))
    two = ReportsWorld(preset).sample(np.random.default_rng(3))
    assert one == two
    rng = np.random.default_rng(3)
    assert world.sample(rng) == one != world.sample(rng)


@pytest.mark.parametrize("preset", PRESETS)
def test_samples_are_judging_samples_about_a_document(preset: str) -> None:
    made = samples(120, preset)
    assert len({sample.id for sample in made}) == 120
    library = ReportsLibrary(preset)
    for sample in made:
        candidates = sample.ground_truth.candidates
        assert len(candidates) in PRESETS[preset].candidates
        assert len(set(candidates)) == len(candidates)
        value = re.compile(rf"\b{re.escape(sample.ground_truth.answer)}\b")
        says = [value.search(each) is not None for each in candidates]
        if len(candidates) == 1:
            assert sample.answers == (str(says[0]),)
        else:
            assert sample.answers == (str(says.index(True) + 1),)
        assert library.name(0)[:-1] in sample.ground_truth.document
        assert sample.images == ()
    shown = library.document(made[0].ground_truth.document)
    assert all(1 <= page <= len(shown) for page in made[0].ground_truth.evidence_pages)


# Chi-square values with a p-value of 1 / 10,000, by degrees of freedom.
CRITICAL = {1: 15.1, 3: 21.1, 5: 25.7, 7: 29.9}


def assert_uniform(counts: Counter[Any], outcomes: int) -> None:
    expected = counts.total() / outcomes
    assert len(counts) == outcomes
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < CRITICAL[outcomes - 1]


@pytest.mark.parametrize("preset", PRESETS)
def test_verdicts_are_balanced(preset: str) -> None:
    made = samples(600, preset, documents=(0, 60))
    by_count: dict[int, Counter[str]] = {}
    for sample in made:
        by_count.setdefault(len(sample.ground_truth.candidates), Counter())[sample.answers[0]] += 1
    assert set(by_count) == set(PRESETS[preset].candidates)
    for count, verdicts in by_count.items():
        assert_uniform(verdicts, max(count, 2))


def test_kinds_are_uniform() -> None:
    made = samples(600, documents=(0, 60))
    assert_uniform(Counter(sample.kind for sample in made), 8)


def test_tiny_color_is_independent_of_the_verdict() -> None:
    made = samples(1200, "tiny", candidates=(1,))
    right = Counter(s.ground_truth.candidates[0] for s in made if s.answers == ("True",))
    wrong = Counter(s.ground_truth.candidates[0] for s in made if s.answers == ("False",))
    assert_uniform(right, 6)
    assert_uniform(wrong, 6)


def test_documents_come_from_the_range_and_all_of_it() -> None:
    world = ReportsWorld("tiny", documents=(10, 14))
    rng = np.random.default_rng(0)
    seen = {world.sample(rng).ground_truth.document for _ in range(100)}
    assert seen == {"cards-10", "cards-11", "cards-12", "cards-13"}


def test_document_is_made_from_its_name_alone() -> None:
    sample = samples(1)[0]
    one = ReportsLibrary().document(sample.ground_truth.document)
    two = ReportsLibrary().document(sample.ground_truth.document + ".pdf")
    assert isinstance(one, Document)
    assert one.name == two.name == sample.ground_truth.document
    page = sample.ground_truth.evidence_pages[0]
    assert one.page_image(page, 300) == two.page_image(page, 300)
    assert one.page_text(page) == two.page_text(page)


NAMES = [
    *("", "report", "report-", "report--1", "report-01", "report-1.5", "report-1\n", "REPORT-1"),
    *("report-9999999999", "../report-1", "report-1/../..", "report-\u0661", "report-1\0"),
    *("cards-1", "x" * 10**4),
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_unknown_are_refused_in_few_words(name: str) -> None:
    with pytest.raises(DataError, match="Names are 'report-0' to 'report-999999999'") as caught:
        ReportsLibrary().document(name)
    assert len(str(caught.value)) < 300


def test_library_keeps_few_documents_and_travels_empty() -> None:
    library = ReportsLibrary("tiny")
    first = library.document("cards-0")
    assert library.document("cards-0") is first
    for seed in range(1, 80):
        library.document(f"cards-{seed}")
    assert library.document("cards-0") is not first  # removed from the cache, and made again
    assert library.document("cards-0").page_image(2, 96) == first.page_image(2, 96)
    data = pickle.dumps(library)
    assert len(data) < 10_000
    again = pickle.loads(data)
    assert again.document("cards-7").page_text(1) == "page 1"
    world = ReportsWorld("tiny")
    copy = pickle.loads(pickle.dumps(world))
    assert copy.sample(np.random.default_rng(3)) == world.sample(np.random.default_rng(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"documents": (5, 5)}, "documents must be two seeds"),
        ({"documents": (-1, 5)}, "documents must be two seeds"),
        ({"documents": (0, 10**9 + 1)}, "documents must be two seeds"),
        ({"documents": (1,)}, "documents must be two seeds"),
        ({"kinds": ()}, "must not be empty, got kinds"),
        ({"candidates": ()}, "must not be empty, got kinds"),
        ({"candidates": (1, 5)}, "1 to 4 candidates, got 5"),
        ({"candidates": (0,)}, "1 to 4 candidates, got 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ReportsWorld(**options)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'default'"):
        ReportsWorld("defalt")
    with pytest.raises(UnknownNameError, match="Did you mean 'chart'"):
        ReportsWorld(kinds=("charts",))
