"""Finds the snippets of README.md and docs/, and says which of them run.

A snippet is a fenced block of Python or of shell commands. The blocks of a page run in order, in
one process and one empty folder, so that a block may use what the blocks before it have made. A
comment before a block states that it does not run, and the reason::

    <!-- snippet: skip, needs a GPU -->

Such a block is still read: Python has to compile, and the options of every ``visenv`` command have
to exist. A block with a title (``title="name.py"``) is written to a file of that name.

A block that needs names, files, data sets or a server that the page does not show has a setup,
which is Python code in a comment. It runs in the names of the page before the block, with the
`tests.docs.page_setup.Setup` of the page as ``setup``::

    <!-- snippet: setup
    setup.replace["<folder>"] = setup.data("vstar")
    setup.words["eval"] = "--episodes 2"
    -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

REASONS = {
    "is part of a program": "names are used that the page does not define",
    "needs a data set": "a folder that is not here",
    "needs a GPU": "",
    "needs a model server": "",
    "needs a simulator": "LIBERO, ai2thor or habitat-lab, which have tests of their own",
    "needs the network": "",
    "sets up the machine": "make, pip or a package manager",
    "takes minutes": "training, or many episodes; tests run smaller versions",
    "trains a model of 3 billion weights": "a test runs the same commands with a tiny model",
}
"""Reasons for which a block does not run."""

_BLOCK = re.compile(
    r"(?:^<!-- snippet: (?:skip, ([^>]*) |setup\n((?:(?!-->).)*))-->\n)?"
    r"^```(python|sh|json|csv)([^\n]*)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>\n]*>|\b(?:FOLDER|NAME)\b")


class Snippet(NamedTuple):
    """Represents one block.

    Attributes:
        page: The page, relative to the repository.
        line: Number of its first line in the page.
        language: ``"python"``, ``"sh"``, or ``"json"`` or ``"csv"`` for a file with a title.
        text: Its text.
        title: Name of the file that the block is written to, or ``""``.
        skipped: Reason why it does not run, or ``""``.
        setup: Hidden code that runs before it, or ``""``.
    """

    page: str
    line: int
    language: str
    text: str
    title: str
    skipped: str
    setup: str = ""

    @property
    def place(self) -> str:
        """Return the page and the line."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each command of a shell block, without variables and placeholders."""
        yield from commands(_PLACEHOLDER.sub("X", self.text))

    def has_placeholder(self) -> bool:
        """Return whether the reader has to fill in a part of the block, such as ``<folder>``."""
        return self.language == "sh" and has_placeholder(self.text)


def has_placeholder(text: str) -> bool:
    """Return whether the reader has to fill in a part of the text, such as ``<folder>``."""
    return bool(_PLACEHOLDER.search(text))


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell text, with the values of its variables."""
    variables: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        command = line
        for name, value in variables.items():
            command = command.replace(f"${name}", value)
        words = shlex.split(command, comments=True)
        if words and all(re.match(r"[A-Z]+=", word) for word in words):
            variables |= dict(word.split("=", 1) for word in words)
        elif words:
            yield words


def snippets(page: Path) -> list[Snippet]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        skipped, setup, language, options, body = match.groups()
        title = re.search(r'title="([^"]+)"', options)
        line = text[: match.start(5)].count("\n") + 1
        name = page.relative_to(ROOT).as_posix()
        written = title[1] if title else ""
        if language in ("json", "csv") and not written:
            continue  # an example that is no file
        found.append(Snippet(name, line, language, body, written, skipped or "", setup or ""))
    return found
