"""Tests the links of CONTRIBUTING.md, and its table of places to change."""

from __future__ import annotations

import re

from tests.docs.links import LINK, ROOT, anchors, broken_links

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def rows_of_changes(page: str) -> list[list[str]]:
    """Return the cells of the rows of the table "Where to change what"."""
    section = page.partition("\n## Where to change what\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    return rows[1:]  # without the header


def absent_names(names: str, file: str) -> list[str]:
    """Return the names in backticks that the linked files do not contain."""
    content = "".join((ROOT / path).read_text(encoding="utf-8") for path in LINK.findall(file))
    return [
        name for name in re.findall(r"`(\w+)`", names) if not re.search(rf"\b{name}\b", content)
    ]


def test_links_of_contributing_lead_to_files_and_headings_that_exist() -> None:
    assert broken_links("CONTRIBUTING.md") == []


def test_table_of_changes_names_files_that_contain_the_names() -> None:
    rows = rows_of_changes(PAGE)
    assert len(rows) >= 20
    absent = {}
    for change, file, names, *_ in rows:
        assert LINK.search(file), change
        assert "`" in names, change
        if found := absent_names(names, file):
            absent[change] = found
    assert absent == {}


def test_absent_names_finds_a_name_that_no_linked_file_contains() -> None:
    file = "[the errors](visenv/errors.py)"
    assert absent_names("`VisenvError`, `NoSuchName`", file) == ["NoSuchName"]


def test_anchors_keep_hyphens_and_drop_punctuation() -> None:
    assert anchors("# The table: `a-b`\ntext\n") == {"the-table-a-b"}
