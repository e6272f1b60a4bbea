"""Renders Markdown in a terminal without truncating the cells of tables."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table
from typing_extensions import override


class _WrappedTable(TableElement):
    """Breaks a word that is wider than its column, instead of truncating the word."""

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class WrappedMarkdown(Markdown):
    """Renders Markdown with tables whose cells are wrapped and never truncated."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _WrappedTable,
    }
