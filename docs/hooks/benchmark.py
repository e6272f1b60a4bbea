"""Puts the table of the committed results of `visenv compare` into its page (MkDocs hook)."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PAGE, MARK = "benchmark.md", "<!-- the table of results -->"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "compare" / "results.md"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the mark of the page by the table."""
    if page.file.src_uri != PAGE:
        return markdown
    return markdown.replace(MARK, RESULTS.read_text(encoding="utf-8"))
