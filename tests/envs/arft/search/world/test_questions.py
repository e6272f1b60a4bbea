"""Tests the questions of both worlds: right, answerable by searching, and in no simpler way."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from visenv.envs.arft.presets import PASSAGES
from visenv.envs.arft.search.ground_truth import SearchTruth, WorldId
from visenv.envs.arft.search.similarity import word_similarity
from visenv.envs.arft.search.world import EntitiesWorld, WorldEngine
from visenv.envs.arft.search.world.names import MAKERS
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.search import Passage
from visenv.types import Sample

PRESETS = ("default", "tiny")
Asked = dict[str, list[Sample]]


def engine_of(sample: Sample) -> WorldEngine:
    world = sample.ground_truth.world
    return WorldEngine(world.preset, world.seed)


@cache
def articles_in(preset: str, seed: int) -> dict[str, str]:
    return {article.title: article.text for article in WorldEngine(preset, seed).articles()}


def articles_of(sample: Sample) -> dict[str, str]:
    world = sample.ground_truth.world
    return articles_in(world.preset, world.seed)


def says(text: str, value: str) -> bool:
    """Return whether the text contains the value, not as a part of a word or of a longer number."""
    return re.search(rf"(?<!\w)(?<!\d,){re.escape(value)}(?!\w|,\d)", text) is not None


# -------------------------------------------------------------------- searching leads to the answer


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_gold_queries_find_their_articles(asked: Asked, preset: str) -> None:
    shown = PASSAGES if preset == "default" else 2
    for sample in asked[preset]:
        for query, article in zip(
            sample.ground_truth.queries, sample.ground_truth.articles, strict=True
        ):
            titles = [found.title for found in engine_of(sample).search(query, shown)]
            assert article in titles, f"{query!r} found {titles}, not {article!r}"


@pytest.mark.parametrize("preset", PRESETS)
def test_articles_name_what_the_next_query_is_about(asked: Asked, preset: str) -> None:
    for sample in asked[preset]:
        articles, titles = articles_of(sample), sample.ground_truth.articles
        for title, after in pairwise(titles):
            assert says(articles[title], after)
        assert says(articles[titles[-1]], sample.answers[0])


@pytest.mark.parametrize("preset", PRESETS)
def test_gold_queries_pass_their_own_guard(asked: Asked, preset: str) -> None:
    for sample in asked[preset]:
        truth = sample.truth_as(SearchTruth)
        pairs = list(zip(truth.queries, truth.names, strict=True))
        for query, names in pairs:
            assert word_similarity(query, query, names) == 1.0
        for (query, names), (other, _) in pairwise(pairs):
            assert word_similarity(other, query, names) == 0.0, "one step is not another"


# ------------------------------------------------------------- other ways do not lead to the answer


@pytest.mark.parametrize("preset", PRESETS)
def test_articles_before_the_last_do_not_hold_the_answer(asked: Asked, preset: str) -> None:
    for sample in asked[preset]:
        articles = articles_of(sample)
        for title in sample.ground_truth.articles[:-1]:
            assert not says(articles[title], sample.answers[0])


@pytest.mark.parametrize("preset", PRESETS)
def test_question_names_nothing_that_has_an_article(asked: Asked, preset: str) -> None:
    for sample in asked[preset]:
        for name in (*articles_of(sample), *sample.answers):
            assert not says(sample.question, name)


@pytest.mark.parametrize("preset", PRESETS)
def test_answer_depends_on_the_image_for_the_same_words(asked: Asked, preset: str) -> None:
    """Check repeated questions of a world: without the image, the answer is often a guess."""
    answers: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for sample in asked[preset]:
        answers[sample.ground_truth.world.seed, sample.question][sample.answers[0]] += 1
    repeated = [found for found in answers.values() if found.total() > 1]
    assert len(repeated) >= 6
    guessed = sum(max(found.values()) for found in repeated)
    assert guessed / sum(found.total() for found in repeated) < 0.7


def test_searching_for_the_question_itself_does_not_find_the_answer(asked: Asked) -> None:
    """Check a policy that ignores the image; it sees at most 4 of 12 to 48 articles of a kind."""
    found = 0
    for sample in asked["default"]:
        results = engine_of(sample).search(sample.question, PASSAGES)
        found += sample.ground_truth.articles[-1] in [passage.title for passage in results]
    assert found / len(asked["default"]) < 0.2


def test_facts_differ_between_worlds(asked: Asked) -> None:
    """Check that facts of one world, learned by heart, do not help in another."""
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for seed in range(60):
        for article in WorldEngine("tiny", seed).articles():
            told[article.title][article.text] = ""
    assert min(len(texts) for texts in told.values()) >= 4


# ---------------------------------------------------------------------------- contents of a sample


@pytest.mark.parametrize("preset", PRESETS)
def test_question_and_its_ground_truth(asked: Asked, preset: str) -> None:
    for sample in asked[preset]:
        truth = sample.truth_as(SearchTruth)
        assert sample.answers[0] in truth.options
        assert len(set(truth.options)) == len(truth.options) >= 4
        assert truth.labels == {"split": truth.split, "hops": str(len(truth.queries))}
        assert len(set(truth.articles)) == len(truth.articles)
    kinds = Counter(
        (sample.ground_truth.split, len(sample.ground_truth.queries)) for sample in asked[preset]
    )
    assert kinds["simple", 1] > 40
    if preset == "tiny":
        assert set(kinds) == {("simple", 1), ("hard", 2)}
    else:
        assert set(kinds) == {("simple", 1), ("simple", 2), ("hard", 2), ("hard", 3)}
        hard = sum(count for (split, _), count in kinds.items() if split == "hard")
        assert 0.35 < hard / 240 < 0.65


def test_hard_questions_of_two_searches_are_about_images_without_a_name(asked: Asked) -> None:
    for sample in asked["default"]:
        if len(sample.ground_truth.queries) == 2:
            assert (sample.ground_truth.split == "hard") == sample.kind.endswith("looks")


def test_answers_have_other_spellings(asked: Asked) -> None:
    found = {answer: sample.answers for sample in asked["default"] for answer in sample.answers[:1]}
    people = [answers for answers in found.values() if " " in answers[0] and len(answers) > 1]
    assert any(answers[1] == answers[0].split()[-1] for answers in people)
    numbers = [answers for answers in found.values() if re.fullmatch(r"\d+,\d{3}", answers[0])]
    assert numbers
    assert all(answers[1] == answers[0].replace(",", "") for answers in numbers)


def test_path_is_clear_if_no_earlier_step_reveals_its_answer() -> None:
    from visenv.envs.arft.search.world.paths import RelationStep, is_clear
    from visenv.envs.arft.search.world.society import Entity

    told = {"founder": "Mira Tolen", "seat": "Norberg"}
    firm = Entity("company", "Kastor Works", None, told, "A stamp of 1901 is now rare.")
    person = Entity("person", "Mira Tolen", None, {"birth year": "1880", "teacher": "Paul Tolen"})

    def clear(**facts: str) -> bool:
        (relation,) = facts
        asked = person._replace(told={relation: facts[relation]})
        return is_clear((RelationStep(firm, "founder"), RelationStep(asked, relation)))

    assert clear(born="1880")
    assert not clear(born="1901"), "a remark holds it"
    assert not clear(birthplace="Norberg"), "a fact of the first"
    assert not clear(employer="Kastor Works"), "where the path began"
    assert not is_clear((RelationStep(person, "teacher"), RelationStep(person, "birth year"))), (
        "a circle"
    )


def test_surname_that_two_people_have_is_no_answer() -> None:
    from visenv.envs.arft.search.world.paths import RelationStep, _answers
    from visenv.envs.arft.search.world.society import Entity

    city = Entity("city", "Norberg", None, {"mayor": "Mira Tolen", "river": "Lune"})
    society = {"Norberg": city, "Mira Tolen": city, "Paul Tolen": city}
    assert _answers(RelationStep(city, "mayor"), society) == ("Mira Tolen",)
    del society["Paul Tolen"]
    assert _answers(RelationStep(city, "mayor"), society) == ("Mira Tolen", "Tolen")
    assert _answers(RelationStep(city, "river"), society) == (
        "Lune",
        "the river Lune",
        "Lune river",
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_sample_is_a_function_of_the_generator(preset: str) -> None:
    world = EntitiesWorld(preset)
    one, shared, other = (world.sample(np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert one is shared
    assert one.id != other.id
    made = world._make(np.random.default_rng(3))
    assert made == one
    assert made is not one


# ---------------------------------------------------------------------------- options


def test_hops_and_worlds_are_chosen() -> None:
    rng = np.random.default_rng(0)
    world = EntitiesWorld("default", worlds=(7, 8), hops=(3,))
    for _ in range(6):
        sample = world.sample(rng)
        assert len(sample.ground_truth.queries) == 3
        assert sample.ground_truth.world == WorldId(preset="default", seed=7)


@pytest.mark.parametrize(
    ("options", "error", "says_so"),
    [
        ({"preset": "tini"}, UnknownNameError, "tiny"),
        ({"worlds": (3, 3)}, ConfigurationError, "first below the second"),
        ({"worlds": (-1, 3)}, ConfigurationError, "first below the second"),
        ({"worlds": (0, 10**9 + 1)}, ConfigurationError, "first below the second"),
        ({"worlds": (0,)}, ConfigurationError, "two seeds"),
        ({"hops": (4,)}, ConfigurationError, r"\[1, 2, 3\]"),
        ({"hops": ()}, ConfigurationError, r"\[1, 2, 3\]"),
        ({"preset": "tiny", "hops": (3,)}, ConfigurationError, r"\[1, 2\]"),
    ],
)
def test_options_that_are_invalid_name_the_valid_ones(
    options: dict[str, object], error: type[Exception], says_so: str
) -> None:
    with pytest.raises(error, match=says_so):
        EntitiesWorld(**options)  # type: ignore[arg-type]


def test_articles_of_one_world_make_an_index_of_ones_own(tmp_path: object) -> None:
    from pathlib import Path

    from visenv.search import open_searcher
    from visenv.search.words import build

    folder = Path(str(tmp_path))
    engine = WorldEngine("default", 7)
    build(folder, engine.articles())
    sample = EntitiesWorld(worlds=(7, 8)).sample(np.random.default_rng(1))
    query = sample.ground_truth.queries[0]
    found: list[Passage] = open_searcher(f"words:{folder}").search(query, PASSAGES)
    assert found == engine.search(query, PASSAGES)


def shared(values: list[object]) -> float:
    """Return the share of values that occur more than once."""
    counts = Counter(values)
    return sum(counts[value] > 1 for value in values) / len(values)


@pytest.mark.parametrize("kind", ["novel", "opera", "bridge"])
def test_titles_of_works_rarely_recur(kind: str) -> None:
    """Check as many titles as 2,000 questions are about: half of them recurred before."""
    rng = np.random.default_rng(0)
    assert shared([MAKERS[kind](rng) for _ in range(333)]) < 0.05


def test_samples_rarely_share_a_world_or_their_work() -> None:
    """Check 60 samples: with the 1,000 worlds of before, two of them had the same world."""
    world = EntitiesWorld(hops=[1])
    samples = [world.sample(np.random.default_rng(seed)) for seed in range(60)]
    assert shared([each.truth_as(SearchTruth).world for each in samples]) == 0
    assert shared([(each.question, *each.truth_as(SearchTruth).queries) for each in samples]) == 0


def test_worlds_of_the_tiny_preset_are_the_first_thousand() -> None:
    tiny, default = EntitiesWorld("tiny"), EntitiesWorld()
    assert (tiny.worlds, tiny.held_out_worlds) == ((0, 1000), (1000, 2000))
    assert default.worlds[1] == default.held_out_worlds[0]
    assert (tiny.world_version, default.world_version) == (1, 2)
