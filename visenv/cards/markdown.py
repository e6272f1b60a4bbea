"""Formats a card as Markdown, for the terminal and for the documentation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from visenv.cards.arguments import arguments_of
from visenv.cards.card import EnvCard
from visenv.cards.transcript import transcript
from visenv.evaluation.summary import SummaryRow

_ARGUMENTS = re.compile(r"### Arguments\n.*?(?=\n###|\Z)", re.DOTALL)


def card_markdown(card: EnvCard, picture: str = "") -> str:
    """Return a card as Markdown with one heading of level 1.

    Args:
        card: The card.
        picture: Markdown of a picture, which is placed below the summary.
    """
    summary, _, body = _ARGUMENTS.sub("", card.description).partition("\n\n")
    sections = {
        "": "\n\n".join(filter(None, (summary, picture))),
        "Facts": _table(("fact", "value"), list(card.facts.items())),
        " ": re.sub(r"\n{3,}", "\n\n", body.strip()).replace("### ", "## "),
        "Presets": _presets(card.presets),
        "Reward terms": _terms(card),
        "Scores": _scores(card),
        "Arguments of gym.make": arguments_of(card.maker),
        "An episode of the oracle": _episode(card),
    }
    return "\n\n".join([f"# {card.env_id}", *_sections(sections)]) + "\n"


def _sections(sections: Mapping[str, str]) -> Iterator[str]:
    for title, text in sections.items():
        if text:
            yield f"## {title}\n\n{text}" if title.strip() else text


def _presets(presets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with a column for each preset and a row for each field."""
    if not presets:
        return ""
    fields = list(dict.fromkeys(name for preset in presets.values() for name in preset))
    rows = [
        (f"`{field}`", *(_value(preset.get(field)) for preset in presets.values()))
        for field in fields
    ]
    return _table(("field", *(f"`{name}`" for name in presets)), rows)


def _terms(card: EnvCard) -> str:
    if card.top is None:
        return "The reward is the score of the task, from 0 to 1; it has no named terms."
    rows = [(f"`{name}`", f"{weight:g}", summary) for name, weight, summary in card.terms]
    columns = 3 if any(term.summary for term in card.terms) else 2
    header = ("term", "weight", "description")[:columns]
    table = _table(header, [row[:columns] for row in rows])
    return f"With the default options; the largest possible reward is {card.top:g}.\n\n{table}"


def _scores(card: EnvCard) -> str:
    """Return the table of the players' scores, with 95 % intervals."""
    if not card.scores:
        return ""
    names = ["reward", *card.metrics]
    rows = [(player, *_means(row, names)) for player, row in card.scores.items()]
    episodes = max(row.episodes + row.aborted for row in card.scores.values())
    note = (
        f"Means over {episodes} held-out episode{'' if episodes == 1 else 's'} with the default "
        "options, with 95 % intervals. `oracle` knows the ground truth. `random` writes noise and "
        f"random well-formed turns. {card.blind_player}"
    )
    for name, summary in card.teachers.items():
        note += f" `teacher {name}` knows the ground truth and has a flaw: {summary}"
    return f"{note}\n\n{_table(('policy', *(f'`{name}`' for name in names)), rows)}"


def _means(row: SummaryRow, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        mean = row.means.get(name)
        yield "" if mean is None or math.isnan(mean.value) else str(mean)


def _episode(card: EnvCard) -> str:
    if card.problem:
        return f"No episode could be played on the machine that made this card: {card.problem}"
    return "" if card.episode is None else transcript(card.episode)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _value(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else str(value)
