"""Tests the index of the papers: it has every recipe, and its figures are in the linked files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs/papers/index.md"
TEXT = INDEX.read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and line.count(" | ") == 3]


def measured() -> list[tuple[str, str, str]]:
    """Return the rows with figures: the part of the paper, the figure, and its file."""
    found, file = [], ""
    for row in ROWS:
        what, _, cell, _ = row.strip("|").split(" | ")
        links = re.findall(r"\]\(([^)#]+)\)", cell)
        file = links[0] if links else file
        found += [(what, figure, file) for figure in re.findall(r"(?<![\w.])\d+\.\d{2,}\b", cell)]
    return found


def test_index_links_the_recipe_of_each_paper() -> None:
    recipes = [path.name for path in (ROOT / "recipes").glob("*.toml")]
    users = {"rows.toml", "any_environment.toml"}  # for rows and environments of users
    full = [name for name in recipes if not name.endswith("_tiny.toml") and name not in users]
    assert [name for name in full if f"recipes/{name})" not in TEXT] == []


@pytest.mark.parametrize(("what", "figure", "file"), measured())
def test_index_has_the_figures_of_the_linked_file(what: str, figure: str, file: str) -> None:
    result = (INDEX.parent / file).resolve().read_text(encoding="utf-8")
    assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", result), f"{what}: {figure} in {file}"


def test_index_lists_the_missing_part_of_each_row() -> None:
    assert len(ROWS) > 30
    assert [row for row in ROWS if not row.strip("| ").split(" | ")[3].strip()] == []
