"""Tests the length and the order of README.md, the start page of the site, and CHANGELOG.md."""

from __future__ import annotations

import re

from tests.docs.links import ROOT, broken_links

README = (ROOT / "README.md").read_text(encoding="utf-8")
START = (ROOT / "docs/index.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def test_readme_has_at_most_1300_words() -> None:
    assert len(README.split()) <= 1300


def test_readme_and_the_start_page_have_the_same_order() -> None:
    first = ["Installation", "One episode", "Train Qwen2.5-VL on your rows", "Environments"]
    assert headings(README)[:4] == first
    assert headings(START)[:4] == first


def test_readme_links_lead_to_files_and_headings_that_exist() -> None:
    assert broken_links("README.md") == []


def test_changelog_fits_on_one_page() -> None:
    assert len(CHANGELOG.split()) <= 800
    assert len(CHANGELOG.splitlines()) <= 75
