"""Finds the snippets of README.md and docs/, and says which of them run.

A snippet is a fenced block of Python or of shell commands. The blocks of a page run in order, in
one process and one empty folder, so that a block may use what the blocks before it have made. A
comment before a block states that it does not run, and the reason::

    <!-- snippet: skip, needs a GPU -->

Such a block is still read: Python has to compile, and the options of every ``visenv`` command have
to exist. A block with a title (``title="name.py"``) is written to a file of that name.
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
    "uses a file that the reader makes": "",
}
"""Reasons for which a block does not run."""

_BLOCK = re.compile(
    r"(?:^<!-- snippet: skip, ([^>]*) -->\n)?^```(python|sh)([^\n]*)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_PLACEHOLDER = re.compile(r"<[A-Za-z][^<>\n]*>|\b(?:FOLDER|NAME)\b")


class Snippet(NamedTuple):
    """Represents one block.

    Attributes:
        page: The page, relative to the repository.
        line: Number of its first line in the page.
        language: ``"python"`` or ``"sh"``.
        text: Its text.
        title: Name of the file that the block is written to, or ``""``.
        skipped: Reason why it does not run, or ``""``.
    """

    page: str
    line: int
    language: str
    text: str
    title: str
    skipped: str

    @property
    def place(self) -> str:
        """Return the page and the line."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each command of a shell block, without variables and placeholders."""
        variables: dict[str, str] = {}
        text = _PLACEHOLDER.sub("X", self.text).replace("\\\n", " ")
        for line in text.splitlines():
            command = line
            for name, value in variables.items():
                command = command.replace(f"${name}", value)
            words = shlex.split(command, comments=True)
            if words and all(re.match(r"[A-Z]+=", word) for word in words):
                variables |= dict(word.split("=", 1) for word in words)
            elif words:
                yield words

    def has_placeholder(self) -> bool:
        """Return whether the reader has to fill in a part of the block, such as ``<folder>``."""
        return bool(_PLACEHOLDER.search(self.text)) if self.language == "sh" else False


def snippets(page: Path) -> list[Snippet]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        skipped, language, options, body = match.groups()
        title = re.search(r'title="([^"]+)"', options)
        line = text[: match.start(4)].count("\n") + 1
        name = page.relative_to(ROOT).as_posix()
        found.append(Snippet(name, line, language, body, title[1] if title else "", skipped or ""))
    return found
