"""Finds the files of a table: a file, a folder, a pattern, or a data set of the hub.

`SplitChoice` chooses the rows of a split, or holds out a part of rows that have no split.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from visenv.data.rows import contents, existing_folder
from visenv.data.tables import SUFFIXES
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.plugins import describe_error

HELD_OUT = ("test", "validation", "dev")
"""Splits that are used as the held-out part, in order of preference."""

_logger = logging.getLogger(__name__)
_SPLIT_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val"), "validation"),
    "dev": "dev",
    **dict.fromkeys(("test", "testing", "eval"), "test"),
}
_SPLIT_IN_NAME = re.compile(rf"(?:^|[-_.])({'|'.join(_SPLIT_NAMES)})(?=[-_.\d]|$)", re.IGNORECASE)
_PATTERN = re.compile(r"[*\[]")


class TableFile(NamedTuple):
    """Describes a file of rows.

    Attributes:
        split: The split that all its rows belong to, or ``""`` if that is not known.
    """

    path: Path
    split: str


def split_name(text: str) -> str:
    """Return the usual name of a split: ``"val"`` and ``"valid"`` mean ``"validation"``."""
    return _SPLIT_NAMES.get(text.casefold(), text)


def find_tables(place: str, config: str = "") -> list[TableFile]:
    """Return the files of rows at a place, sorted by name within each split.

    Args:
        place: A file, a folder, or a pattern such as ``data/train-*.parquet``. Of a folder, the
            files are used that its README declares for the configuration, as on the hub; otherwise
            the files of rows in the folder, or in ``data``, or in the folder of the configuration.
        config: The configuration, for a folder with several of them.

    Raises:
        ConfigurationError: If a configuration is needed, or files of several formats are found.
        UnknownNameError: If there is no such configuration.
        DataError: If there is no such file or folder, or it contains no file of rows.
    """
    path = Path(place).expanduser()
    if path.is_file():
        return [TableFile(path, "")]
    if _PATTERN.search(place) and not path.exists():
        found = [file for file in _matching(path) if file.is_file()]
        if not found:
            raise DataError(f"No file matches {place!r}.")
        return [TableFile(file, _split_of(file)) for file in found]
    if path.suffix.lower() in SUFFIXES and not path.exists():
        raise DataError(f"There is no file {place!r}.{_near(path)}")
    folder = existing_folder(path)
    declared = _declared(folder)
    if declared:
        return _of_config(folder, declared, config)
    return [TableFile(file, _split_of(file)) for file in _in_folder(folder, config)]


def _matching(pattern: Path) -> list[Path]:
    """Return the files that match a pattern, sorted; the pattern may be absolute."""
    parts = pattern.parts
    first = next(place for place, part in enumerate(parts) if _PATTERN.search(part))
    root = Path(*parts[:first]) if first else Path()
    return sorted(root.glob(str(Path(*parts[first:]))))


def _near(path: Path) -> str:
    beside = [file.name for file in _tables_in(path.parent)] if path.parent.is_dir() else []
    return f" The folder has {', '.join(sorted(beside)[:8])}." if beside else ""


def _split_of(file: Path) -> str:
    """Return the split in the name of a file or of its folder, ``""`` if there is none."""
    for name in (file.stem, file.parent.name):
        found = _SPLIT_IN_NAME.search(name)
        if found:
            return _SPLIT_NAMES[found[1].casefold()]
    return ""


def _tables_in(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.iterdir()):
        hidden = file.name.startswith((".", "_"))
        if file.suffix.lower() in SUFFIXES and not hidden and file.is_file():
            yield file


def _in_folder(folder: Path, config: str) -> list[Path]:
    """Return the files of rows of a folder without declared files."""
    if config:
        configs = {entry.name: entry for entry in sorted(folder.iterdir()) if entry.is_dir()}
        if config not in configs:
            raise UnknownNameError(f"configuration of {folder}", config, configs)
        folder = configs[config]
    found = list(_tables_in(folder))
    if not found and (folder / "data").is_dir():
        found = list(_tables_in(folder / "data"))
    if not found:
        inner = [each.name for each in sorted(folder.iterdir()) if each.is_dir()]
        nested = [name for name in inner if any(_tables_in(folder / name))]
        if nested:
            raise ConfigurationError(
                f"{folder} has several configurations; choose one with config=NAME: "
                f"{', '.join(nested[:20])}."
            )
        raise DataError(f"Expected a file of rows in {folder}; it holds {contents(folder)}.")
    suffixes = sorted({file.suffix.lower() for file in found})
    if len(suffixes) > 1:
        raise ConfigurationError(
            f"{folder} has files of rows in several formats ({', '.join(suffixes)}); name one "
            f"file, or a pattern such as rows:{folder}/*{suffixes[-1]}."
        )
    return found


def _declared(folder: Path) -> Mapping[str, Sequence[TableFile]]:
    """Return the files of each configuration that the README of a hub folder declares."""
    readme = folder / "README.md"
    if not readme.is_file():
        return {}
    try:
        from huggingface_hub import metadata_load

        metadata: Any = metadata_load(readme) or {}
    except Exception as error:  # noqa: BLE001  no huggingface_hub, or a head that is not YAML
        _logger.info("%s declares no files: %s", readme, describe_error(error))
        return {}
    configs = metadata.get("configs") if isinstance(metadata, dict) else None
    found: dict[str, Sequence[TableFile]] = {}
    for entry in configs if isinstance(configs, list) else ():
        if isinstance(entry, dict) and "data_files" in entry:
            files = list(_data_files(folder, entry["data_files"]))
            if files:
                found[str(entry.get("config_name", "default"))] = files
    return found


def _data_files(folder: Path, declared: Any) -> Iterator[TableFile]:
    """Yield the files of ``data_files``: a pattern, a list of patterns, or a list by split."""
    for entry in declared if isinstance(declared, list) else [declared]:
        split, paths = "", entry
        if isinstance(entry, dict):
            split, paths = split_name(str(entry.get("split", ""))), entry.get("path", ())
        for pattern in [paths] if isinstance(paths, str) else paths:
            if isinstance(pattern, str) and ".." not in pattern and not pattern.startswith("/"):
                for file in sorted(folder.glob(pattern)):
                    if file.is_file() and file.suffix.lower() in SUFFIXES:
                        yield TableFile(file, split or _split_of(file))


def _of_config(
    folder: Path, declared: Mapping[str, Sequence[TableFile]], config: str
) -> list[TableFile]:
    if config and config not in declared:
        raise UnknownNameError(f"configuration of {folder}", config, declared)
    if not config and "default" not in declared and len(declared) > 1:
        raise ConfigurationError(
            f"{folder} has several configurations; choose one with config=NAME: "
            f"{', '.join(list(declared)[:20])}."
        )
    return list(declared[config or ("default" if "default" in declared else next(iter(declared)))])


class SplitChoice:
    """Chooses the rows of a split.

    Args:
        name: The split, or ``""`` for all rows.
        holdout: Share of the rows in ``"test"`` if the rows have no split, above 0 and below 1.
        files: The files of rows.

    Raises:
        ConfigurationError: If `holdout` is not such a number.
    """

    def __init__(self, name: str, holdout: str | float, files: Sequence[TableFile]) -> None:
        self._name = split_name(name)
        self._holdout = _share(holdout)
        self._of_files = {file.split for file in files} - {""}

    def may_have(self, file: TableFile) -> bool:
        """Return whether a file may have rows of the split."""
        if not self._name or not file.split or self._of_files == {"train"}:
            return True
        return file.split == self._resolved(self._of_files)

    def choose(self, ids: Iterable[str], splits: Sequence[str]) -> list[bool] | None:
        """Return whether each row belongs to the split, by its id and split; None for all rows."""
        if not self._name:
            return None
        known = {split_name(split) for split in {*splits}} - {""}
        if known - {"train"}:
            wanted = self._resolved(known | self._of_files)
            return [split_name(split) == wanted for split in splits]
        if self._name not in ("train", *HELD_OUT):
            raise UnknownNameError("split of these rows", self._name, ("train", "test"))
        held_out = _held_out(list(ids), self._holdout)
        return [is_held_out == (self._name != "train") for is_held_out in held_out]

    def _resolved(self, known: set[str]) -> str:
        """Return the split; a held-out part may have any of its usual names."""
        if self._name in known:
            return self._name
        usual = [name for name in HELD_OUT if name in known]
        if self._name in HELD_OUT and usual:
            return usual[0]
        raise UnknownNameError("split of these rows", self._name, sorted(known))


def _held_out(identities: Sequence[str], share: float) -> list[bool]:
    """Return which rows are held out: those with a small hash of their id, at least one of two."""
    hashes = [hashlib.sha256(each.encode("utf-8", "surrogatepass")).digest() for each in identities]
    limit = int(share * 2**64)
    chosen = [int.from_bytes(digest[:8]) < limit for digest in hashes]
    if len(hashes) > 1 and not any(chosen):
        chosen[hashes.index(min(hashes))] = True
    return chosen


def _share(given: str | float) -> float:
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise ConfigurationError(f"holdout must be above 0 and below 1, got {given!r}.")
    return share
