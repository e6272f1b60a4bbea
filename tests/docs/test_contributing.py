"""Tests the links of CONTRIBUTING.md, and its table of places to change."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub derives them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


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


def leads_somewhere(link: str) -> bool:
    """Return whether the file of a link exists and has the heading of its anchor, if any."""
    path, _, anchor = link.partition("#")
    target = ROOT / (path or "CONTRIBUTING.md")
    if not anchor:
        return target.exists()
    return target.is_file() and anchor in anchors(target.read_text(encoding="utf-8"))


def test_links_of_contributing_lead_to_files_and_headings_that_exist() -> None:
    assert [link for link in LINK.findall(PAGE) if not leads_somewhere(link)] == []


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
