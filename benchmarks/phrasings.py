"""Counts the phrasings that the parsers of options, letters and verdicts misread or do not read.

    python benchmarks/phrasings.py [--list]

Each line of the tables is a reply with its right value, as a careful person reads it, and its
source: an issue or a test of another project, a finding, or "written by hand". The rows "written
after the parser" were tried on it once it was finished, and are counted on their own. A phrasing is
misread if the parser returns another value, and unread if it returns nothing although the reply has
a value.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from visenv.envs.arm.verdicts import read_verdict
from visenv.rewards.choice import chosen_letter, chosen_letters

Row = Mapping[str, Any]

AFTER = "written after the parser"
TESTS = Path(__file__).parent.parent / "tests"
TABLES: Mapping[str, tuple[Path, Callable[[Row], str | None]]] = {
    "options": (
        TESTS / "visenv/rewards/option_phrasings.jsonl",
        lambda row: chosen_letter(row["text"], row["options"]),
    ),
    "letters": (
        TESTS / "visenv/rewards/letter_phrasings.jsonl",
        lambda row: chosen_letters(row["text"]) or None,
    ),
    "verdicts": (
        TESTS / "envs/arm/verdict_phrasings.jsonl",
        lambda row: read_verdict(row["text"], row["candidates"]),
    ),
}


def main() -> None:
    """Print two lines for each table: the rows before the parser, and those after it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="also print the rows")
    listed = parser.parse_args().list
    print(f"{'table':18}{'rows':>6}{'with a value':>14}{'misread':>9}{'unread':>8}")
    for name, (path, read) in TABLES.items():
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for part in ("before", "after"):
            chosen = [
                (row, read(row)) for row in rows if (row["source"] == AFTER) == (part == "after")
            ]
            if chosen:
                report(f"{name}, {part}", chosen, listed=listed)


def report(name: str, rows: list[tuple[Row, str | None]], *, listed: bool) -> None:
    """Print the counts of some rows, and what the parser returned for each."""
    unread = [(row, got) for row, got in rows if got is None and row["right"] is not None]
    misread = [(row, got) for row, got in rows if got not in (None, row["right"])]
    valued = sum(row["right"] is not None for row, _ in rows)
    print(f"{name:18}{len(rows):6}{valued:14}{len(misread):9}{len(unread):8}")
    for kind, found in (("misread", misread), ("unread", unread)) if listed else ():
        for row, got in found:
            print(f"  {kind} {row['text']!r}: {got}, right {row['right']}")


if __name__ == "__main__":
    main()
