"""Search by words through tantivy, for a million passages and more: the extra ``search``.

Faster than FTS5 on common words, as it skips what cannot be among the best, and mapped into memory
whatever its size.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError, DataError, ServiceError
from visenv.search.passage import Passage, cleaned

FOLDER = "tantivy"
_FIELDS = ("title", "text", "url")
_SEARCHED = ["title", "text"]
_TITLE_WEIGHT = {"title": 2.0}
_MOST_WORDS = 32
_WORD = re.compile(r"\w+")


def build(folder: Path, passages: Iterable[Passage]) -> int:
    """Write the index into ``folder/tantivy``, whole or not at all; return how many passages.

    Raises:
        DataError: If there are none.
        ConfigurationError: If tantivy is not installed.
    """
    tantivy = _tantivy()
    final, partial = folder / FOLDER, folder / f".{FOLDER}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    index = tantivy.Index(_schema(tantivy), path=str(partial))
    writer = index.writer(num_threads=1)  # several would number passages in no fixed order
    count = 0
    for count, passage in enumerate(passages, start=1):  # noqa: B007 - counted for after the loop
        fields = [each.encode("utf-8", "replace").decode("utf-8") for each in passage]
        writer.add_document(tantivy.Document(**dict(zip(_FIELDS, fields, strict=True))))
    writer.commit()
    writer.wait_merging_threads()
    if not count:
        shutil.rmtree(partial)
        raise DataError("There is no passage to index.")
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    return count


class TantivySearch:
    """Searches an index that `build` wrote.

    Args:
        folder: Of the index.

    Raises:
        DataError: If the folder holds no whole index.
        ConfigurationError: If tantivy is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()
        tantivy = _tantivy()
        place = self.folder / FOLDER
        if not place.is_dir():
            raise DataError(
                f"{self.folder} holds no index of tantivy: make one by `visenv search build "
                "--tantivy`."
            )
        try:
            with _panics_as_errors():
                self._index = tantivy.Index.open(str(place))
                self._searcher = self._index.searcher()
        except ValueError as error:
            raise DataError(f"{place} is no index that can be read: {error}") from error
        self.name = f"tantivy:{self._searcher.num_docs}"

    def search(self, query: str, count: int) -> list[Passage]:
        """The passages with the best BM25.

        Raises:
            ServiceError: If the index is damaged.
        """
        words = list(dict.fromkeys(_WORD.findall(cleaned(query).lower())))[:_MOST_WORDS]
        if not words:
            return []
        # Each word in quotes: nothing of a query is an operator.
        text = " ".join(f'"{word}"' for word in words)
        try:
            with _panics_as_errors():
                parsed = self._index.parse_query(text, _SEARCHED, field_boosts=_TITLE_WEIGHT)
                hits = self._searcher.search(parsed, count, count=False).hits
                found = [self._searcher.doc(address) for _, address in hits]
        except ValueError as error:
            raise ServiceError("search", f"{self.folder / FOLDER}: {error}") from error
        return [Passage(*(str(each.get_first(name)) for name in _FIELDS)) for each in found]

    def close(self) -> None:
        """Nothing needs to be let go: files are mapped."""

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return TantivySearch, (self.folder,)


@contextmanager
def _panics_as_errors() -> Iterator[None]:
    """Damage inside a file makes tantivy's Rust panic, which would pass every `except Exception`.

    Raises:
        ValueError: As for damage that it notices.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # no module has it
            raise
        raise ValueError(str(error)) from None


def _tantivy() -> Any:
    try:
        import tantivy
    except ImportError as error:
        raise ConfigurationError(
            "This engine needs tantivy: pip install 'visenv[search]'. words:<index> needs nothing."
        ) from error
    return tantivy


def _schema(tantivy: Any) -> Any:
    builder = tantivy.SchemaBuilder()
    for name in _SEARCHED:
        builder.add_text_field(name, stored=True, tokenizer_name="en_stem")
    builder.add_text_field("url", stored=True, index_option="basic")
    return builder.build()
