"""Defines passages, corpora of passages, and the interface of search engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from visenv.decoding.files import read_lines, read_text
from visenv.decoding.json_text import read_json
from visenv.errors import ConfigurationError, DataError
from visenv.files import leads_inside, replacing
from visenv.text.words import passages

LONGEST_QUERY = 500
"""Maximum number of characters of a query that are used; web engines refuse much longer queries."""

PASSAGE_WORDS = 100
"""Words of a passage, as in the passages of open-domain question answering (DPR, FlashRAG)."""

_TEXT_SUFFIXES = (".txt", ".md")

_TITLE_KEYS = ("title", "name")

_TEXT_KEYS = ("text", "contents", "content", "body", "passage")

_URL_KEYS = ("url", "link", "href")


class Passage(NamedTuple):
    """Holds one result of a search.

    Attributes:
        title: Title of the page or article.
        text: The passage, or the snippet of a web engine.
        url: The address of the result; ``""`` in a corpus without addresses.
    """

    title: str
    text: str
    url: str = ""


class Searcher(Protocol):
    """Represents a search engine. It can be used from several threads, and pickled.

    Attributes:
        name: Name of the engine and of all settings that affect its answers, for caches and
            reports.
    """

    name: str

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the best passages for a query, best first; an empty list if there are none.

        Args:
            query: Any text; characters beyond `LONGEST_QUERY` are not used.
            count: Maximum number of passages, at least 1.

        Raises:
            ServiceError: If the engine failed beyond its retries.
        """
        ...

    def close(self) -> None:
        """Release the resources of the engine; a later search opens it again."""
        ...


def cleaned(query: str) -> str:
    """Return a query for an engine: valid Unicode, no control characters, not too long."""
    encodable = query.encode("utf-8", "replace").decode("utf-8")
    printable = "".join(each if each.isprintable() else " " for each in encodable)
    return " ".join(printable.split())[:LONGEST_QUERY]


class Corpus:
    """Reads the passages of files, in the order of the files' names.

    A ``.txt`` or ``.md`` file is one article, titled by its name. A line of a ``.jsonl`` file is an
    object with ``text`` (or ``contents``, FlashRAG's name, whose first line is the title if there
    is no ``title``), and optionally ``title`` and ``url``. Long articles are split into passages.

    Args:
        path: A file, or a folder, which is read with all its subfolders. Links to files outside of
            the folder are omitted.
        words: Most words of a passage; two Chinese, Japanese or Thai characters count as a word.

    Attributes:
        problems: The lines and files that could not be read so far: ``"file:line: problem"``.

    Raises:
        DataError: If there are no text files, or only links to files outside of the folder.
        ConfigurationError: If `words` is below 1.
    """

    def __init__(self, path: str | Path, words: int = PASSAGE_WORDS) -> None:
        if words < 1:
            raise ConfigurationError(f"A passage needs at least 1 word, got {words}.")
        self.path = Path(path).expanduser()
        self.words = words
        self.problems: list[str] = []
        self._files, self._links = _files(self.path)

    def __iter__(self) -> Iterator[Passage]:
        self.problems[:] = [f"{file}: leads out of the folder" for file in self._links]
        for file in self._files:
            articles = self._lines(file) if file.suffix == ".jsonl" else self._text(file)
            for article in articles:
                yield from cut(article, self.words)

    def _text(self, file: Path) -> Iterator[Passage]:
        try:
            yield Passage(file.stem, read_text(file))
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{file}: {error}")

    def _lines(self, file: Path) -> Iterator[Passage]:
        for number, line in enumerate(read_lines(file), start=1):
            if not line.strip():
                continue
            try:
                yield _article(line)
            except DataError as error:
                self.problems.append(f"{file}:{number}: {error}")


def cut(article: Passage, words: int) -> Iterator[Passage]:
    """Return the article in passages of at most `words` words (`visenv.text.words.passages`).

    None for an article without words.
    """
    for text in passages(article.text, words):
        yield article._replace(text=text)


def _files(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to read, and the links that lead out of the folder."""
    if path.is_file():
        return [path], []
    suffixes = (*_TEXT_SUFFIXES, ".jsonl")
    found = sorted(each for each in path.rglob("*") if each.suffix in suffixes and each.is_file())
    if not found:
        raise DataError(f"There is no {', '.join(suffixes)} file in {str(path)!r}.")
    inside, outside = list[Path](), list[Path]()
    for each in found:
        (inside if leads_inside(path, each) else outside).append(each)
    if not inside:
        raise DataError(
            f"Every text file in {str(path)!r} is a link that leads out of the folder. Copy the "
            "files into it."
        )
    return inside, outside


def _article(line: bytes) -> Passage:
    row = read_json(line)
    if not isinstance(row, dict):
        raise DataError(f"a line must be a JSON object, got {line[:80]!r}")
    text = _first(row, _TEXT_KEYS)
    if text is None:
        raise DataError(f"there is no text; expected one of the keys {', '.join(_TEXT_KEYS)}")
    title = _first(row, _TITLE_KEYS)
    if title is None:  # FlashRAG: the title is the first line, in quotes
        first, _, rest = text.partition("\n")
        title, text = (first.strip('" '), rest) if rest else ("", text)
    return Passage(title, text, _first(row, _URL_KEYS) or "")


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str)), None)


def write_passages(source: Any, path: Path) -> int:
    """Write the passages of a data set as JSONL for ``visenv search build``; return their number.

    Args:
        source: A data set whose method `passages` yields `Passage` objects, such as HotpotQA.
        path: The file to write.

    Raises:
        ConfigurationError: If the source has no passages.
        DataError: If the files contain no passages.
    """
    if not hasattr(source, "passages"):
        raise ConfigurationError(
            f"{type(source).__name__} is not a data set with paragraphs, such as HotpotQA."
        )
    count = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for passage in source.passages():
            file.write(json.dumps({"title": passage.title, "text": passage.text}) + "\n")
            count += 1
        if not count:
            raise DataError(f"The rows of {source.folder} contain no paragraphs.")
    return count
