"""Converts the values of cells: images, texts, options, answers and boxes, as people store them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from visenv.data.encoded_image import decoded_bytes
from visenv.data.json_rows import written_list
from visenv.errors import DataError
from visenv.files import is_relative
from visenv.types import Image

_BASE64_OF_IMAGE = ("/9j/", "iVBORw0KGgo", "R0lGOD", "UklGR", "Qk", "SUkq", "TU0AK")
"""The first characters of JPEG, PNG, GIF, WebP, BMP and TIFF files in Base64."""
_LONGEST_PATH = 4096
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,10}://", re.IGNORECASE)
_LETTER = re.compile(r"\(?([A-Z])[).:]?")


class ImageCell(NamedTuple):
    """Holds one image of a cell.

    Attributes:
        path: The path as written, or ``""``.
        encoded: The encoded image as bytes or Base64 text; None if there is a path.
    """

    path: str
    encoded: bytes | str | None = None

    def open(self, folders: Sequence[str], name: str) -> Image:
        """Return a handle to the image.

        Args:
            folders: See `find_file`.
            name: The name of the image in errors.

        Raises:
            DataError: If there is no such file, or the text is not Base64.
        """
        if self.encoded is None:
            return Image.from_file(find_file(self.path, folders))
        return Image.from_bytes(decoded_bytes(self.encoded, name), name)


def image_cells(value: Any) -> list[ImageCell]:
    """Return the images of a cell; an empty cell gives an empty list.

    An image is a path, bytes, Base64 text with or without a ``data:`` prefix, the struct of the
    `datasets` library (``{"bytes": …, "path": …}``), or a list of these, which CSV and TSV contain
    as JSON or Python text.

    Raises:
        DataError: If the value is something else.
    """
    if value is None or value in ("", b""):
        return []
    if isinstance(value, str) and value.startswith("["):
        value = written_list(value)
    if isinstance(value, list | tuple):
        return [cell for item in value for cell in image_cells(item)]
    if isinstance(value, bytes):
        return [ImageCell("", value)]
    if isinstance(value, Mapping):
        return _struct(value)
    if not isinstance(value, str):
        raise DataError(
            f"an image must be a path, bytes, Base64 text, or a list of these, got {value!r:.80}"
        )
    if _is_encoded(value):
        return [ImageCell("", value)]
    return [ImageCell(value)]


def _struct(value: Mapping[Any, Any]) -> list[ImageCell]:
    encoded, path = value.get("bytes"), value.get("path")
    if encoded:
        return image_cells(encoded)
    if not isinstance(path, str) or not path:
        raise DataError(f'an image must be {{"bytes": …, "path": …}}, got {value!r:.80}')
    return [ImageCell(path)]


def _is_encoded(text: str) -> bool:
    return (
        len(text) > _LONGEST_PATH
        or text[:5].lower() == "data:"
        or (len(text) > 64 and text.startswith(_BASE64_OF_IMAGE))
    )


def find_file(name: str, folders: Sequence[str]) -> str:
    """Return the path of the file with this name in the first of `folders` that contains it.

    An absolute name is allowed if it is in one of the folders.

    Raises:
        DataError: If there is no such file, or the name leads out of the folders.
    """
    if "://" in name and _ADDRESS.match(name):
        raise DataError(f"{name[:200]!r} is an address; download the files, and name their paths")
    # The first test is a fast one, for a hundred thousand names.
    if (name[:1] in ("", "/", "\\") or ".." in name) and not is_relative(name):
        inside = [folder for folder in folders if _is_below(name, folder)]
        if not inside:
            raise DataError(
                f"the file name {name[:200]!r} leads out of the folder {folders[0]!r}; name "
                "another folder with the option 'folder'"
            )
        name, folders = os.path.relpath(name, inside[0]), inside[:1]
    for folder in folders:
        path = f"{folder}/{name}"  # a path object takes five times as long
        if os.path.isfile(path):  # noqa: PTH113
            return path
    raise DataError(f"there is no file {str(Path(folders[0], name))[:400]!r}")


def _is_below(name: str, folder: str) -> bool:
    if "\0" in name or not Path(name).is_absolute():
        return False
    return Path(os.path.normpath(name)).is_relative_to(Path(folder).absolute())


def short_text(value: Any, what: str) -> str:
    """Return a text without blanks at its ends; a number becomes its decimal form.

    Raises:
        DataError: If the value is something else, or blank.
    """
    if isinstance(value, str):
        text = value.strip()
        if text:
            return text
    elif isinstance(value, int | float) and not isinstance(value, bool):
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else str(value)
    raise DataError(f"no {what}: {value!r:.80}")


def texts(value: Any, what: str) -> tuple[str, ...]:
    """Return a list of texts or numbers, which may be written as JSON or Python text.

    Raises:
        DataError: If the value is something else, empty, or an item is blank.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = written_list(value.strip())
    if not isinstance(value, list | tuple) or not value:
        raise DataError(f"{what} must be a list of texts, got {value!r:.80}")
    return tuple([short_text(item, f"text in {what}") for item in value])


def answer_texts(value: Any) -> tuple[str, ...]:
    """Return the accepted answers of a cell: one text or number, or a list of them.

    Raises:
        DataError: If there is no answer.
    """
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, list | tuple):
        return tuple(dict.fromkeys(texts(value, "answers")))
    return (short_text(value, "answer"),)


def right_letter(answer: Any, options: Sequence[str]) -> str:
    """Return the letter of the right option.

    Args:
        answer: A letter, the text of one option, or an integer: the index from 0, as `datasets`
            stores a class label.
        options: The options.

    Raises:
        DataError: If the answer selects no option, or several.
    """
    if isinstance(answer, list | tuple) and len(answer) == 1:
        (answer,) = answer
    letters = ascii_uppercase[: len(options)]
    if isinstance(answer, int) and not isinstance(answer, bool):
        if str(answer) in options:
            answer = str(answer)
        elif 0 <= answer < len(options):
            return letters[answer]
        else:
            raise DataError(
                f"the answer {answer} is no index of {len(options)} options; indices begin at 0"
            )
    text = short_text(answer, "answer")
    places = [place for place, option in enumerate(options) if option == text]
    if len(places) == 1:
        return letters[places[0]]
    letter = _LETTER.fullmatch(text)
    if places or letter is None or letter[1] not in letters:
        raise DataError(
            f"the answer {text!r:.80} selects none of the options {list(options)!r:.200}"
        )
    return letter[1]
