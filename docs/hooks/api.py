"""Adds the API reference to the site, with one page for each module or package (MkDocs hook).

mkdocstrings generates the pages from the docstrings. The list of pages is read from the folders, so
a new module gets a page automatically.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SECTION = "API"
GROUPS = {
    "visenv": "Core",
    "envs": "visenv.envs",
    "policies": "visenv.policies",
    "algos": "visenv.algos",
}
INTERNAL = {"files", "old_names", "private_names"}
"""Modules of the core that are internal."""
LEFT_OUT = {"cli", "viewer", "envs", "policies", "algos", "recipes", *INTERNAL}
"""Modules without a page in the group of the core.

`--help` describes the commands. The packages envs, policies and algos have groups of their own.
"""


def on_config(config: MkDocsConfig) -> None:
    """Add the pages to the navigation."""
    section: list[Any] = next(each[SECTION] for each in config.nav or [] if SECTION in each)
    for folder, title in GROUPS.items():
        section.append({title: [{name: f"api/{name}.md"} for name, _ in _modules(folder)]})


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages to the files of the site; `api_rendered` names those with their docstrings."""
    rendered = config.extra["api_rendered"].split()
    index = ["# API reference", "Generated from the docstrings of the code."]
    for folder, title in GROUPS.items():
        rows = ["| module | purpose |", "|---|---|"]
        for name, path in _modules(folder):
            is_short = bool(rendered) and name not in rendered
            page = f"# `{name}`\n" if is_short else _page(name, path)
            files.append(File.generated(config, f"api/{name}.md", content=page))
            rows.append(f"| [`{name}`]({name}.md) | {_summary(path).replace('|', chr(92) + '|')} |")
        index += [f"## {title}", "\n".join(rows)]
    files.append(File.generated(config, "api/index.md", content="\n\n".join(index) + "\n"))


def _modules(folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each module and package directly in a folder."""
    package = "visenv" if folder == "visenv" else f"visenv.{folder}"
    for path in sorted((ROOT / folder).iterdir()):
        found = path / "__init__.py" if path.is_dir() else path
        name = path.stem
        if name.startswith("_") or name in LEFT_OUT or found.suffix != ".py" or not found.exists():
            continue
        yield f"{package}.{name}", found


def _page(name: str, path: Path) -> str:
    """Return the page of a module, or of a package with its public modules."""
    parts = [f"# `{name}`", f"::: {name}\n    options:\n      show_root_heading: false"]
    if path.name == "__init__.py":
        for module in sorted(path.parent.rglob("*.py")):
            inner = module.relative_to(path.parent).with_suffix("")
            if module != path and not _is_private(inner):
                parts.append(f"::: {name}.{'.'.join(inner.parts)}")
    return "\n\n".join(parts) + "\n"


def _is_private(module: Path) -> bool:
    """Return whether a module has a private name, or lists private names of other packages."""
    return any(part.startswith("_") for part in module.parts) or module.name == "private_names"


def _summary(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n\n")[0].replace("\n", " ")
