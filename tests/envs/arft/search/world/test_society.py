"""Tests the default world: its links, its similar names, and the texts of its articles."""

from __future__ import annotations

import re

import numpy as np
import pytest

from visenv.envs.arft.search.world import WorldEngine, names
from visenv.envs.arft.search.world.catalog import KINDS
from visenv.envs.arft.search.world.names import Namer
from visenv.envs.arft.search.world.society import DOUBLES, Society, described
from visenv.search.corpus import Passage

SEEDS = range(40, 44)


def world(seed: int) -> Society:
    made: Society = WorldEngine("default", seed).world
    return made


def differing(one: str, other: str) -> int:
    """Return the number of letters in which two names of the same length differ."""
    assert len(one) == len(other), (one, other)
    return sum(a != b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_links_lead_to_others_of_their_kind(seed: int) -> None:
    society = world(seed)
    for entity in society.values():
        for relation, how in KINDS[entity.kind].relations.items():
            value = entity.told[relation]
            assert (value in society) == bool(how.target)
            if how.target:
                assert society[value].kind == how.target
                assert value != entity.name


@pytest.mark.parametrize("seed", SEEDS)
def test_near_doubles_are_a_third(seed: int) -> None:
    society = world(seed)
    for kind in KINDS:
        entities = [each for each in society.values() if each.kind == kind]
        assert len(entities) == KINDS[kind].population
        for place in range(DOUBLES - 1, len(entities), DOUBLES):
            one, double = entities[place - 1], entities[place]
            if kind == "novel":
                assert one.name.split()[:2] == double.name.split()[:2]
            else:
                assert differing(one.name, double.name) == 1
            for relation, how in KINDS[kind].relations.items():
                values = one.told[relation], double.told[relation]
                if how.target:
                    assert values[0] != values[1]
                elif values[0][0].isdigit():
                    numbers = [int(value.replace(",", "")) for value in values]
                    assert 1 <= abs(numbers[0] - numbers[1]) <= 9


@pytest.mark.parametrize("seed", SEEDS)
def test_entities_of_a_kind_look_different_even_with_colors_swapped(seed: int) -> None:
    society = world(seed)
    for kind in KINDS:
        looks = [each.look for each in society.values() if each.kind == kind and each.look]
        assert len(looks) == (KINDS[kind].population if KINDS[kind].looks else 0)
        assert all(look.ink != look.ground for look in looks)
        assert len({(look.charge, frozenset(look[::2])) for look in looks}) == len(looks)


@pytest.mark.parametrize("seed", SEEDS)
def test_article_contains_all_facts_in_several_sentences(seed: int) -> None:
    society = world(seed)
    articles: dict[str, Passage] = {
        article.title: article for article in WorldEngine("default", seed).articles()
    }
    assert list(articles) == list(society)
    for entity in society.values():
        text = articles[entity.name].text
        assert text.startswith(entity.name)
        assert len(re.findall(r"\.(?: |$)", text)) >= len(entity.told) + 2
        for value in entity.told.values():
            assert value in text
        assert entity.look is None or described(entity) in text
        assert "{" not in text


def test_worlds_of_different_seeds_differ() -> None:
    assert world(40).keys() != world(41).keys()


def test_namer_never_gives_a_name_twice() -> None:
    namer = Namer(np.random.default_rng(0))
    for kind in KINDS:
        names = [namer.new(kind) for _ in range(30)]
        names += [namer.near(kind, names[0]), namer.near(kind, names[1])]
        assert len(set(names)) == 32


def test_words_of_looks_are_words_of_nothing_else() -> None:
    """Check the words of looks, because a search for a look would find articles with them."""
    shown = {*names.COLORS, *names.CHARGES, *names.HEADGEAR}
    told = " ".join(
        sentence
        for kind in KINDS.values()
        for relation in kind.relations.values()
        for sentence in relation.sentences
    )
    others = " ".join((told, *names.PRODUCTS, *names.INSTRUMENTS, *names.MATERIALS, *names.REMARKS))
    assert not shown & set(re.findall(r"\w+", others.lower()))
