"""Runs the snippets of one page in this process and folder; reads them as JSON from standard input.

Each item is ``[kind, place, content]``: ``"python"`` with code, ``"visenv"`` with the words of a
command, ``"file"`` with a name and a text.
"""

from __future__ import annotations

import json
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from visenv.cli import main


def run(kind: str, place: str, content: Any, namespace: dict[str, Any]) -> None:
    """Run one snippet."""
    if kind == "file":
        Path(content[0]).write_text(content[1], encoding="utf-8")
    elif kind == "visenv":
        status = main(content)
        if status:
            raise SystemExit(f"{place}: visenv {' '.join(content)} ended with {status}")
    else:
        linecache.cache[place] = (len(content), None, content.splitlines(keepends=True), place)
        exec(compile(content, place, "exec"), namespace)  # noqa: S102  that is what it is for


if __name__ == "__main__":
    sys.path.insert(0, "")
    page = ModuleType("page")
    sys.modules["page"] = page
    for kind, place, content in json.load(sys.stdin):
        print(f"# {place}", file=sys.stderr, flush=True)
        run(kind, place, content, page.__dict__)
