"""Tests names: public classes are unique, identifiers are American, tests name a component."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ("visenv", "envs", "policies", "algos")
CODE = (*LIBRARY, "tests", "examples", "benchmarks", "docs/hooks")

WORDS = (
    *("aluminium", "analys(?=ed|er|ing)", "armour", "artefact", "behaviour", "catalogue", "centre"),
    *("centring", "centred", "colour", "defence", "favour", "flavour", "fulfil(?!l)", "grey"),
    *("honour", "judgement", "labelled", "labelling", "labour", "learnt", "licence", "modelled"),
    *("modelling", "mould", "neighbour", "rumour", "spelt", "travell", "vapour"),
)
STEMS = (
    *("capitalis", "categoris", "customis", "generalis", "initialis", "maximis", "minimis"),
    *("normalis", "optimis", "organis", "parametris", "penalis", "quantis", "randomis"),
    *("realis", "recognis", "regularis", "serialis", "standardis", "summaris", "synchronis"),
    *("tokenis", "utilis", "vectoris", "visualis"),
)
# `cancelled` and `cancelling` are the spelling of asyncio.
_BRITISH = re.compile(f"{'|'.join(WORDS)}|(?:{'|'.join(STEMS)})(?=e|ing|ation)")
BEGINNINGS = tuple(word.partition("(")[0] for word in (*WORDS, *STEMS))
"""Letters without which a text has no British part; they are found faster than by `_BRITISH`."""

FOREIGN = ("drawCentredString",)
"""Names of other packages that are used here (reportlab)."""


NOUNS_FOLLOW = {
    "A",
    "An",
    "The",
    "What",
    "How",
    "Whether",
    "Where",
    "One",
    "Its",
    "Our",
    "No",
    "All",
}
"""Words with which a docstring must not begin; the card of an environment begins "The policy"."""

NOT_UNDER_TEST = (
    *("a", "an", "the", "what", "whether", "why", "how", "wherever", "every", "any", "one", "two"),
    *("half", "our", "ours", "never", "without", "before", "at", "too", "asleep", "wrong", "bad"),
)
"""Words with which the name of a test must not begin, because they do not name a component."""


def files(*folders: str) -> list[Path]:
    """Return the Python files of folders, each once: the links in ``visenv/`` are left out."""
    found = {path.resolve() for folder in folders for path in (ROOT / folder).rglob("*.py")}
    return sorted(path for path in found if "__pycache__" not in path.parts)


class Definition(NamedTuple):
    """Describes a module, a class or a function.

    Attributes:
        kind: The type of its node.
        name: Its name; empty for a module.
        words: The first four words of its docstring.
        is_outer: Whether it is defined at the top level of its module.
    """

    kind: type[ast.AST]
    name: str
    words: list[str]
    is_outer: bool


@cache
def definitions(text: str) -> list[Definition]:
    """Return a module with all its classes and functions; each text is parsed once."""
    tree = ast.parse(text)
    outer = {id(node) for node in tree.body}
    return [
        Definition(
            type(node),
            getattr(node, "name", ""),
            (ast.get_docstring(node, clean=False) or "").split()[:4],  # type: ignore[arg-type]
            id(node) in outer,
        )
        for node in nodes(tree)
    ]


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a module with all its classes and functions; no expression is visited."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from nodes(child)


def public_classes(text: str) -> list[str]:
    """Return the names of the public classes at the top level of a module."""
    classes = [each for each in definitions(text) if each.kind is ast.ClassDef and each.is_outer]
    return [each.name for each in classes if not each.name.startswith("_")]


def british_names(lines: list[str]) -> set[str]:
    """Return the identifiers of Python code with a British part."""
    text = "".join(lines).lower()
    if not any(letters in text for letters in BEGINNINGS) or not _BRITISH.search(text):
        return set()
    tokens = tokenize.generate_tokens(iter([*lines, ""]).__next__)
    names = {each.string for each in tokens if each.type == tokenize.NAME}
    return {name for name in names - set(FOREIGN) if _BRITISH.search(name.lower())}


def verbless_docstrings(text: str) -> list[str]:
    """Return the first words of the docstrings that begin with a noun or a question word."""
    return [
        " ".join(words)
        for _, _, words, _ in definitions(text)
        if words and words[0] in NOUNS_FOLLOW and words[:2] != ["The", "policy"]
    ]


def nameless_tests(text: str) -> list[str]:
    """Return the names of tests that do not begin with the component under test."""
    tests = [
        each.name
        for each in definitions(text)
        if each.kind is not ast.ClassDef and each.name.startswith("test_")
    ]
    return [name for name in tests if name.split("_")[1] in NOT_UNDER_TEST]


def test_public_classes_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in files(*LIBRARY):
        for name in public_classes(path.read_text(encoding="utf-8")):
            places[name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_identifiers_are_spelled_as_in_american_english() -> None:
    found = {}
    for path in files(*CODE):
        if names := british_names(path.read_text(encoding="utf-8").splitlines(keepends=True)):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_docstrings_begin_with_a_verb() -> None:
    found = {}
    for path in files(*LIBRARY, "tests", "examples", "benchmarks", "docs/hooks"):
        if verbless := verbless_docstrings(path.read_text(encoding="utf-8")):
            found[str(path.relative_to(ROOT))] = verbless
    assert found == {}


def test_tests_begin_with_the_component_under_test() -> None:
    found = {}
    for path in files("tests", "examples"):
        if names := nameless_tests(path.read_text(encoding="utf-8")):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_nameless_tests_reads_the_first_word() -> None:
    text = "def test_the_parser(): ...\ndef test_parser(): ...\nasync def test_bad(): ...\n"
    assert nameless_tests(text) == ["test_the_parser", "test_bad"]


def test_verbless_docstrings_reads_first_words() -> None:
    text = '''"""What a row is."""
class A:
    """A row that is bad."""
    def f(): """Return a row."""
class B: """The policy answers."""
'''
    assert verbless_docstrings(text) == ["What a row is.", "A row that is"]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def normalise(x): return x\n", {"normalise"}),
        ("BACKGROUND_COLOUR = 'colour'\n", {"BACKGROUND_COLOUR"}),
        ("class GreyImage: pass\n", {"GreyImage"}),
        ("normalize(color, gray=True)  # the colour grey\n", set()),
        ("raise ValueError('initialise')\n", set()),
        ("canvas.drawCentredString()\n", set()),
        ("realistic_noise = task.cancelled()\n", set()),
    ],
)
def test_british_names_reads_identifiers_alone(code: str, names: set[str]) -> None:
    assert british_names([code]) == names


def test_public_classes_leaves_out_private_and_nested_ones() -> None:
    text = "class A:\n    class B: pass\nclass _C: pass\ndef f():\n    class D: pass\n"
    assert public_classes(text) == ["A"]
