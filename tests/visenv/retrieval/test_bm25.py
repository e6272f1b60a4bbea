"""Tests BM25: by hand, and against the formula computed one text and one word at a time."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.retrieval.bm25 import Bm25, Postings, PostingsTable, length_norms, term_weights


def index(texts: list[list[str]], k1: float = 1.5, b: float = 0.75) -> Bm25:
    return Bm25(len(texts), PostingsTable(texts, k1, b).get)


def test_scores_worked_by_hand() -> None:
    # Lengths 2, 4, 3: mean 3. "red" is in texts 0 and 1 of 3: log(1 + 1.5 / 2.5) = log 1.6.
    bm25 = index([text.split() for text in ("red car", "red red red bike", "a blue boat")])
    rarity = math.log(1.6)
    # Text 0: f = 1, l = 2/3: 1.5 * (0.25 + 0.75 * 2/3) = 1.125; 1 / (1 + 1.125).
    # Text 1: f = 3, l = 4/3: 1.5 * (0.25 + 0.75 * 4/3) = 1.875; 3 / (3 + 1.875).
    red = [rarity / 2.125, rarity * 3 / 4.875, 0]
    assert bm25.scores(["red"]).tolist() == pytest.approx(red)
    # "boat" is in text 2 only: log(1 + 2.5 / 1.5); f = 1, l = 1: 1 / (1 + 1.5) = 0.4.
    boat = [0, 0, 0.4 * math.log(1 + 2.5 / 1.5)]
    assert bm25.scores(["boat"]).tolist() == pytest.approx(boat)
    # A word counts as often as it is in the query, and the scores of words are added.
    both = [2 * one + other for one, other in zip(red, boat, strict=True)]
    assert bm25.scores(["red", "boat", "red", "absent"]).tolist() == pytest.approx(both)
    assert bm25.best(["red"], 5) == [1, 0]
    assert bm25.best(["red", "boat"], 2) == [2, 1]  # .221, .289, .392
    assert bm25.best(["boat", "boat"], 5) == [2]


def test_postings_name_the_texts_in_order() -> None:
    table = PostingsTable([["b", "a"], [], ["a", "a"]], 1.2, 0.75)
    found = table.get("a")
    assert found is not None
    assert found.texts.tolist() == [0, 2]
    assert table.get("c") is None
    assert len(table) == 3  # a and b in text 0, a in text 2


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_texts_without_words_are_never_found(texts: list[list[str]]) -> None:
    bm25 = index(texts)
    assert bm25.best(["a"], 3) == []
    assert bm25.best([], 3) == []


def test_ties_go_to_the_earlier_text_in_whatever_order_weights_are_added() -> None:
    """Check two texts with the same ten weights in opposite order.

    Sums in single precision depend on the order, so some of these queries would rank text 1 first.
    """
    weights = np.random.default_rng(0).random(10).astype(np.float32)
    postings = {
        f"w{number}": Postings(np.array([0, 1]), weights[[number, 9 - number]])
        for number in range(10)
    }
    bm25 = Bm25(2, postings.get)
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert bm25.best(map(str, rng.permutation(list(postings))), 2) == [0, 1]


def plain_scores(texts: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """Compute the formula, one text and one word at a time, in double precision."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for word in query:
            holding = sum(word in other for other in texts)
            times = text.count(word)
            if times:
                rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                score += rarity * times / (times + k1 * (1 - b + b * len(text) / mean))
        scores.append(score)
    return scores


_words = st.lists(st.sampled_from("abcdefgh"), max_size=20)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(_words, min_size=1, max_size=12).filter(any), _words,
    st.floats(0, 3), st.floats(0, 1), st.integers(1, 12),
)  # fmt: skip
def test_scores_and_ranking_are_those_of_the_formula(
    texts: list[list[str]], query: list[str], k1: float, b: float, count: int
) -> None:
    bm25 = index(texts, k1, b)
    expected = plain_scores(texts, query, k1, b)
    assert bm25.scores(query).tolist() == pytest.approx(expected, rel=1e-6, abs=0)
    best = bm25.best(query, count)
    assert len(best) == min(count, sum(score > 0 for score in expected))
    for earlier, later in pairwise(best):
        close = expected[earlier] == pytest.approx(expected[later], rel=1e-6)
        assert close or expected[earlier] > expected[later]
    left_out = set(range(len(texts))) - set(best)
    worst = min((expected[text] for text in best), default=math.inf)
    assert all(expected[text] <= worst * (1 + 1e-6) for text in left_out)


def test_weights_of_a_word_may_be_computed_alone_or_with_others() -> None:
    """Compare weights computed word by word (a corpus on disk) and all at once (a document)."""
    texts = [["a", "b", "a"], ["b"], ["a", "c", "c", "c"], ["b", "c"]]
    table = PostingsTable(texts, 1.2, 0.75)
    norms = length_norms([len(text) for text in texts], 1.2, 0.75)
    for word in "abc":
        found = table.get(word)
        assert found is not None
        counts = np.array([texts[text].count(word) for text in found.texts])
        alone = term_weights(counts, norms[found.texts], len(counts), len(texts))
        assert alone.tolist() == found.weights.tolist()
