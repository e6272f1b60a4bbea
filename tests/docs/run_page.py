"""Runs the snippets of one page in this process and folder; reads them as JSON from standard input.

Each item is ``[kind, place, text]``: ``"python"`` with code, ``"sh"`` with commands, ``"setup"``
with the hidden code of the next item; ``"file"`` has a name and a text instead of the text.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.docs.page_setup import Setup
from tests.docs.snippets import commands, has_placeholder
from visenv.cli import main


def run(kind: str, place: str, content: Any, names: dict[str, Any], setup: Setup) -> None:
    """Run one snippet, or the setup of the next one."""
    if kind == "file":
        Path(content[0]).write_text(content[1], encoding="utf-8")
    elif kind == "sh":
        run_commands(place, setup.replaced(content), setup)
    else:
        code = content if kind == "setup" else setup.replaced(content)
        run_python(f"{place} (setup)" if kind == "setup" else place, code, names)
    if kind == "python":
        setup.blocks.append(content)
    if kind != "setup":
        setup.replace.clear()
        setup.words.clear()


def run_python(place: str, code: str, names: dict[str, Any]) -> None:
    """Run code, which may contain ``await`` outside functions."""
    linecache.cache[place] = (len(code), None, code.splitlines(keepends=True), place)
    compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if compiled.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(compiled, names))  # noqa: S307  the code of the page
    else:
        exec(compiled, names)  # noqa: S102  the code of the page


def run_commands(place: str, text: str, setup: Setup) -> None:
    """Run the commands of a shell block in this process."""
    for _, name, *words in commands(text):
        if has_placeholder(" ".join(words)):
            raise SystemExit(f"{place}: the setup leaves something to fill in: {words}")
        status = run_command([name, *words, *setup.words.get(name, "").split()])
        if status:
            raise SystemExit(f"{place}: visenv {name} {' '.join(words)} ended with {status}")


def run_command(words: list[str]) -> int:
    """Run one command, and return its status; ``--help`` exits."""
    try:
        return main(words)
    except SystemExit as end:
        return int(end.code or 0)


if __name__ == "__main__":
    items = json.load(sys.stdin)
    sys.stdin = io.StringIO()
    page = ModuleType("page")
    sys.modules["page"] = page
    with Setup() as setup:
        page.setup = setup  # type: ignore[attr-defined]
        for kind, place, content in items:
            print(f"# {place}", file=sys.stderr, flush=True)
            run(kind, place, content, page.__dict__, setup)
