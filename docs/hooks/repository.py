"""Copies files outside docs/ to which pages link into the site (MkDocs hook).

A link therefore works on the site, on a code host and in a checkout, and the site needs no address
of a code host. A text file becomes a page, a notebook the page of its cells, a folder the list of
its files, and any other file is copied.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
FOLDER = "repository"

_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_RICH = ("image/png", "image/webp", "text/markdown")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".yaml": "yaml", ".js": "js"}


def on_config(config: MkDocsConfig) -> None:
    """Set the address of the repository, if pyproject.toml contains one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config.repo_url = project.get("urls", {}).get("Repository")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add every file of the repository that a page links to, and those that these link to."""
    waiting = [file.src_uri for file in files.documentation_pages()]
    while waiting:
        page = waiting.pop()
        file = files.get_file_from_path(page)
        assert file is not None
        for _, link, _ in _LINK.findall(file.content_string):
            target = _target(page, link)
            if target is None or files.get_file_from_path(target) or not target.startswith(FOLDER):
                continue
            added = _copy(config, target)
            files.append(added)
            if added.is_documentation_page():
                waiting.append(target)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links to files outside docs/."""
    source = page.file.src_uri

    def rewritten(match: re.Match[str]) -> str:
        target = _target(source, match[2])
        if target is None:
            return match[0]
        return match[1] + posixpath.relpath(target, posixpath.dirname(source) or ".") + match[3]

    return _LINK.sub(rewritten, markdown)


def _target(page: str, link: str) -> str | None:
    """Return the page or file of the site to which a relative link leads, or None if there is none.

    Args:
        page: The page with the link, relative to the folder of pages.
        link: The link, relative to the folder of the page in the repository.
    """
    place = page.removeprefix(f"{FOLDER}/") if page.startswith(f"{FOLDER}/") else f"docs/{page}"
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    if path.startswith("docs/"):
        return path.removeprefix("docs/") if place != f"docs/{page}" else None
    if path.startswith("..") or not (ROOT / path).exists():
        return None
    if (ROOT / path).is_dir():
        return f"{FOLDER}/{path}/index.md"
    suffix = "" if _suffix(path) in {".md", ".png", ".svg", ".webp"} else ".md"
    return f"{FOLDER}/{path}{suffix}"


def _copy(config: MkDocsConfig, target: str) -> File:
    path = target.removeprefix(f"{FOLDER}/")
    if (ROOT / path).is_file():
        return File.generated(config, target, abs_src_path=str(ROOT / path))
    if path.endswith("/index.md"):
        folder = ROOT / path.removesuffix("/index.md")
        return File.generated(config, target, content=_listing(folder))
    path = path.removesuffix(".md")
    text = (ROOT / path).read_text(encoding="utf-8")
    language = _LANGUAGES.get(_suffix(path), "text")
    body = _cells(text) if _suffix(path) == ".ipynb" else _code(text, language)
    return File.generated(config, target, content=f"# `{path}`\n\n{body}\n")


def _listing(folder: Path) -> str:
    """Return the page of a folder: a link to each of its files."""
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    names = [each.relative_to(folder).as_posix() for each in files]
    links = "\n".join(f"- [{name}]({name})" for name in names if "__pycache__" not in name)
    return f"# `{folder.relative_to(ROOT).as_posix()}/`\n\n{links}\n"


def _cells(notebook: str) -> str:
    shown: list[str] = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        shown.append(_code(text, "python") if cell["cell_type"] == "code" else text)
        shown += _outputs(cell.get("outputs", ()))
    return "\n\n".join(shown)


def _outputs(outputs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the outputs of a cell: pictures, pages in Markdown, and texts.

    Consecutive texts are one block.
    """
    text = ""
    for output in outputs:
        data = output.get("data", {"text/plain": output.get("text", "")})
        rich = next((kind for kind in _RICH if kind in data), None)
        if rich is None:
            text += _COLOR.sub("", "".join(data["text/plain"]))
            continue
        if text.strip():
            yield _code(text, "text")
        text, content = "", "".join(data[rich])
        if rich == "text/markdown":
            yield content
        else:
            encoded = content.replace("\n", "")
            yield f"![output](data:{rich};base64,{encoded})"
    if text.strip():
        yield _code(text, "text")


def _code(text: str, language: str) -> str:
    return f"~~~~~~{language}\n{text.rstrip()}\n~~~~~~"


def _suffix(path: str) -> str:
    return Path(path).suffix
