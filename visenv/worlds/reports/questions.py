"""Asks questions about a report, each kind with known evidence, and writes answers to them.

A wrong answer is worded by the same rules as a right one and has the same length. It differs in one
or two of number, name, year and direction, and its values occur elsewhere in the report. Only the
report shows which answer is right: among four values, the right one is not always the odd one out
or the middle one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np

from visenv.worlds.draws import pick, shuffled
from visenv.worlds.reports.report import (
    STATUSES,
    STEP,
    Bars,
    Curve,
    Register,
    Report,
    Section,
    Table,
)

_MOST_WRONG = 3

_OPENINGS = (
    "According to the report of {company}, there is a clear answer for {topic}.",
    "The report of {company} deals with {topic}, and that settles the matter.",
    "I looked up {topic} in the report of {company}.",
    "What the report says on {topic} answers this.",
    "This can be read from what the report of {company} gives on {topic}.",
)

_CLOSINGS = (
    "I have checked the labels before saying so.",
    "The rest of the report says nothing to the contrary.",
    "Nothing beyond the {place} is needed to see this.",
    "The other sections of the report deal with different matters.",
    "That is as far as the report goes on this question.",
)


class ReportQuestion(NamedTuple):
    """Holds a question whose evidence is known.

    Attributes:
        kind: A label for statistics.
        text: The question.
        pages: All pages that are needed for the answer, from 1.
        gold_query: Words that find these pages by their text.
        answer: The right value.
        wrong: Different wrong values; those from the same document come first.
        respond: Words a response that claims a value.
    """

    kind: str
    text: str
    pages: tuple[int, ...]
    gold_query: str
    answer: str
    wrong: tuple[str, ...]
    respond: Callable[[np.random.Generator, str], str]


def responder(
    report: Report, topic: str, place: str, claims: Sequence[str]
) -> Callable[[np.random.Generator, str], str]:
    """Return a function that words an answer: an opening, a claim with the value, a closing.

    Args:
        report: The report of the question.
        topic: The topic of the answer.
        place: The name of the exhibit that holds the evidence, for example ``"table"``.
        claims: Sentences with ``{}`` in place of the value.
    """
    return partial(_respond, {"company": report.company, "topic": topic, "place": place}, claims)


def _respond(
    names: dict[str, str], claims: Sequence[str], rng: np.random.Generator, value: str
) -> str:
    opening, closing = pick(rng, _OPENINGS).format(**names), pick(rng, _CLOSINGS).format(**names)
    return f"{opening} {pick(rng, claims).format(value)} {closing}"


def others(rng: np.random.Generator, right: object, found: Iterable[object]) -> tuple[str, ...]:
    """Return up to three found values that differ from the right one, in random order."""
    different = dict.fromkeys(str(each) for each in found if each != right)
    return tuple(shuffled(rng, list(different))[:_MOST_WRONG])


def crossed(
    rng: np.random.Generator, words: tuple[str, str], numbers: tuple[int, int], form: str
) -> tuple[str, tuple[str, ...]]:
    """Return the right value, made of a word and a number, and the three other combinations.

    Args:
        rng: Orders the other combinations at random.
        words: The right word and the wrong one.
        numbers: The right number and the wrong one.
        form: Format string for word and number, for example ``"{} by {}"``.
    """
    right, *rest = (form.format(word, number) for word in words for number in numbers)
    return right, tuple(shuffled(rng, rest))


def different_places(rng: np.random.Generator, values: Sequence[int]) -> tuple[int, int]:
    """Return two indices whose values differ; if all values are equal, two different indices.

    Both orders are equally likely, so that no value is first more often.

    Args:
        rng: Draws the indices.
        values: At least two values.
    """
    while True:
        one, two = rng.permutation(len(values))[:2].tolist()
        if values[one] != values[two] or len(set(values)) == 1:
            return one, two


class _Asked(NamedTuple):
    """Holds the output of a maker of questions: the question, and the claims of its answer."""

    text: str
    gold_query: str
    answer: str
    wrong: tuple[str, ...]
    claims: tuple[str, ...]


class _Kind(NamedTuple):
    """Describes a kind of question: the exhibit of its section, the evidence, its maker."""

    exhibit: type[Any]
    place: str
    make: Callable[[np.random.Generator, Report, Section, Any], _Asked]


def ask(rng: np.random.Generator, report: Report, kind: str) -> ReportQuestion | None:
    """Return a question of that kind about the report; None if no section has its subject.

    Args:
        rng: Source of all randomness.
        report: The report of the question.
        kind: A key of `KINDS`.
    """
    if kind == COMPARISON:
        return _compare(rng, report)
    exhibit, place, make = _KINDS[kind]
    fitting = [section for section in report.sections if isinstance(section.exhibit, exhibit)]
    if not fitting:
        return None
    section = pick(rng, fitting)
    asked = make(rng, report, section, section.exhibit)
    return ReportQuestion(
        kind=kind,
        text=asked.text,
        pages=(section.page,),
        gold_query=asked.gold_query,
        answer=asked.answer,
        wrong=asked.wrong,
        respond=responder(report, section.topic.phrase, place, asked.claims),
    )


def _ask_table(rng: np.random.Generator, report: Report, section: Section, table: Table) -> _Asked:
    row, column = int(rng.integers(len(table.sites))), int(rng.integers(len(table.years)))
    site, year, right = table.sites[row], table.years[column], table.values[row][column]
    near = [*table.values[row], *(each[column] for each in table.values)]
    topic, unit = section.topic.phrase, section.topic.unit
    return _Asked(
        f"How high was {topic} at {site} in {year}, in {unit}?",
        f"{topic} {site} {year}",
        str(right),
        others(rng, right, near),
        (
            f"In {year}, {topic} at {site} came to {{}} {unit}.",
            f"The entry for {site} in {year} is {{}} {unit} of {topic}.",
            f"For {site}, {{}} {unit} of {topic} are given in {year}.",
        ),
    )


def _ask_chart(rng: np.random.Generator, report: Report, section: Section, bars: Bars) -> _Asked:
    place = int(rng.integers(len(bars.sites)))
    site, right = bars.sites[place], bars.values[place]
    topic, unit = section.topic.phrase, section.topic.unit
    return _Asked(
        f"In the chart, how high is {topic} at {site}, in {unit}?",
        f"{topic} by site {site}",
        str(right),
        others(rng, right, bars.values),
        (
            f"The bar of {site} ends at {{}} {unit}.",
            f"At {site}, {topic} reached {{}} {unit} in {report.year}.",
            f"For {site}, the chart shows {{}} {unit} of {topic}.",
        ),
    )


def _ask_peak(rng: np.random.Generator, report: Report, section: Section, curve: Curve) -> _Asked:
    word, extreme = (("highest", max), ("lowest", min))[int(rng.integers(2))]
    right = curve.years[curve.values.index(extreme(curve.values))]
    topic = section.topic.phrase
    return _Asked(
        f"In which of the years shown was {topic} {word}?",
        f"{topic} by year",
        str(right),
        others(rng, right, curve.years),
        (
            f"The curve is {word} in {{}}.",
            f"Of all years shown, {{}} is the one in which {topic} was {word}.",
            f"It was in {{}} that {topic} was {word}.",
        ),
    )


def _ask_change(rng: np.random.Generator, report: Report, section: Section, curve: Curve) -> _Asked:
    steps = [after - before for before, after in pairwise(curve.values)]
    place, another = different_places(rng, [abs(step) for step in steps])
    first, last = curve.years[place : place + 2]
    words = ("rose", "fell") if steps[place] > 0 else ("fell", "rose")
    right, wrong = abs(steps[place]), abs(steps[another])
    distances = right, wrong if wrong != right else right + STEP
    topic, unit = section.topic.phrase, section.topic.unit
    return _Asked(
        f"How did {topic} change from {first} to {last}, in {unit}?",
        f"{topic} by year {first} {last}",
        *crossed(rng, words, distances, "{} by {}"),
        (
            f"From {first} to {last}, {topic} {{}} {unit}.",
            f"Between {first} and {last}, it {{}} {unit}.",
            f"After {first}, {topic} {{}} {unit} until {last}.",
        ),
    )


def _ask_count(
    rng: np.random.Generator, report: Report, section: Section, register: Register
) -> _Asked:
    counts = dict.fromkeys(STATUSES, 0)
    for _, _, status in register.rows:
        counts[status] += 1
    status = pick(rng, STATUSES)
    topic = section.topic.phrase
    return _Asked(
        f"How many works in the register on {topic} are {status}?",
        f"{topic} register of works {status}",
        str(counts[status]),
        others(rng, counts[status], counts.values()),
        (
            f"The number of works that are {status} is {{}}.",
            f"Counting the rows marked as {status}, one gets {{}}.",
            f"Of the {len(register.rows)} works listed, the number marked as {status} is {{}}.",
        ),
    )


def _ask_lead(rng: np.random.Generator, report: Report, section: Section, _: object) -> _Asked:
    topic = section.topic.phrase
    return _Asked(
        f"Who is responsible for {topic}?",
        f"responsible for {topic}",
        section.lead,
        others(rng, section.lead, [*report.board, *(each.lead for each in report.sections)]),
        (
            f"The person responsible for {topic} is {{}}.",
            f"Responsibility for {topic} lies with {{}}.",
            f"It names {{}} as the one responsible for {topic}.",
        ),
    )


def _ask_review(rng: np.random.Generator, report: Report, section: Section, _: object) -> _Asked:
    dates = [report.approved, *(each.reviewed for each in report.sections)]
    topic = section.topic.phrase
    return _Asked(
        f"When did the last review of {topic} take place?",
        f"last review of {topic}",
        section.reviewed,
        others(rng, section.reviewed, dates),
        (
            f"The last review of {topic} took place on {{}}.",
            f"It was on {{}} that {topic} was last reviewed.",
            f"The date of the last review of {topic} is {{}}.",
        ),
    )


def _compare(rng: np.random.Generator, report: Report) -> ReportQuestion:
    pairs = list(permutations(report.sections, 2))
    gaps_of = [abs(first.budget - second.budget) for first, second in pairs]
    place, another = different_places(rng, gaps_of)
    one, two = pairs[place]
    names = one.topic.phrase, two.topic.phrase
    order = names if one.budget > two.budget else (names[1], names[0])
    gaps = gaps_of[place], gaps_of[another]
    answer, wrong = crossed(rng, order, gaps, "{} has the larger one, by {} thousand crowns")
    claims = (
        "Of the two budgets, {}.",
        "Once the two budgets are put side by side, {}.",
        "As regards the budgets, {}.",
    )
    return ReportQuestion(
        kind=COMPARISON,
        text=f"Which has the larger budget, {names[0]} or {names[1]}, and by how much?",
        pages=tuple(sorted((one.page, two.page))),
        gold_query=f"budget for {names[0]} {names[1]}",
        answer=answer,
        wrong=wrong,
        respond=responder(report, " and ".join(names), "two budgets", claims),
    )


COMPARISON = "comparison"

_KINDS = {
    "table": _Kind(Table, "table", _ask_table),
    "chart": _Kind(Bars, "chart", _ask_chart),
    "peak": _Kind(Curve, "chart", _ask_peak),
    "change": _Kind(Curve, "chart", _ask_change),
    "count": _Kind(Register, "table", _ask_count),
    "lead": _Kind(object, "text", _ask_lead),
    "review": _Kind(object, "text", _ask_review),
}

KINDS = (*_KINDS, COMPARISON)
"""Kinds: a table cell; a bar; a year and a difference from a curve; a count; a name and a date from
a sentence; two budgets on two pages."""
