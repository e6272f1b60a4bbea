"""Our Punkt against NLTK's own class, on the same parameters."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.checks.english import ENGLISH
from visenv.checks.punkt import Punkt, PunktParameters

# Every way a word can be known: seen in lower case only, as a name only, in both ways.
TRICKY = PunktParameters(
    abbreviations=frozenset({"mr", "e.g", "u.s", "no", "p.m", "e"}),
    collocations=frozenset({("##number##", "international"), ("mar", "##number##"), (".", "x")}),
    starters=frozenset({"the", "it"}),
    orthography={"the": 46, "smith": 12, "apples": 32, "dog": 36, "x": 8, "who": 18, "in.": 32},
)

# Not drawn: signs that two engines of regular expressions class differently (superscript digits,
# fractions, combining marks, separators of ASCII).
PIECES = [*".?!,;:-–—()[]{}\"'‘’“”«»*@&#`_%$0123456789 \n\t"]
PIECES += ["...", ". . .", "?!", "!!!", "--", "\n\n", "\r\n", "\xa0", "\u2028", "é.", "ß", "İ."]
PIECES += ["Mr.", "E.G.", "U.S.", "p.m.", "No. 5", "5.", "3.14", "1,000.", "-5.", "A.", "b.", "_."]
PIECES += [
    " The",
    " the",
    " It",
    " he",
    "Smith",
    "dog",
    "Apples",
    "who",
    "x",
    "International",
    "in.",
]
PIECES += ["semi-mr.", "Mar. 5", " ", " ", " ", ". ", ". ", ". "]

texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def theirs(parameters: PunktParameters) -> Any:
    from nltk.tokenize.punkt import PunktParameters as NltkParameters
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    trained = NltkParameters()
    trained.abbrev_types = set(parameters.abbreviations)
    trained.collocations = set(parameters.collocations)
    trained.sent_starters = set(parameters.starters)
    trained.ortho_context = defaultdict(int, parameters.orthography)
    return PunktSentenceTokenizer(trained)


@pytest.mark.component("nltk")
@pytest.mark.parametrize("parameters", [TRICKY, ENGLISH], ids=["tricky", "english"])
def test_splits_as_nltk_does(parameters: PunktParameters) -> None:
    ours, nltks = Punkt(parameters), theirs(parameters)

    @settings(max_examples=200, derandomize=True)
    @given(texts)
    def agree(text: str) -> None:
        assert ours.split(text) == nltks.tokenize(text)

    agree()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith came. He sat.", ["Dr. Smith came.", "He sat."]),
        ("He lives in the U.S. It is big.", ["He lives in the U.S.", "It is big."]),
        ("See fig. 3 on p. 5 first.", ["See fig. 3 on p. 5 first."]),
        ("He said no. Then he left.", ["He said no.", "Then he left."]),
        ("It is No. 5 of ten.", ["It is No. 5 of ten."]),
        ("We met J. S. Bach there.", ["We met J. S. Bach there."]),
        ("It cost 3.50 in all. Cheap!", ["It cost 3.50 in all.", "Cheap!"]),
        ('He said "Stop." She did.', ['He said "Stop."', "She did."]),
        ("(It rained.) We left.", ["(It rained.)", "We left."]),
        ("Well... maybe. Or not.", ["Well... maybe.", "Or not."]),
        ("  Blanks before. And after.  ", ["  Blanks before.", "And after."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_english(text: str, expected: list[str]) -> None:
    assert Punkt(ENGLISH).split(text) == expected


@given(st.text())
def test_nothing_but_blanks_is_lost(text: str) -> None:
    assert _without_blanks("".join(Punkt(ENGLISH).split(text))) == _without_blanks(text)


def _without_blanks(text: str) -> str:
    return "".join(text.split())
