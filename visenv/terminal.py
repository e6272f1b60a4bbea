r"""Shows texts of other people in a terminal.

A name in a received file may contain sequences that change the title of a terminal, clear it, write
a link, or reverse the order of letters. `printable` shows such characters as escapes: errors,
tables, progress lines and logs use it for every text that this program did not write.
"""

from __future__ import annotations

import logging
import re
import shlex
import warnings
from typing import TYPE_CHECKING, Any

from typing_extensions import override

if TYPE_CHECKING:
    from rich.text import Text

_HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, C0, DEL and C1
    "\xad\u061c\u180e\u200b\u200e\u200f"  # invisible characters and marks of direction
    "\u2028-\u202e\u2060-\u206f"  # line separators; embeddings, overrides and isolates
    "\ufeff\ufff9-\ufffb"
    "\ud800-\udfff"  # halves of surrogate pairs, which cannot be encoded
    "\U000e0000-\U000e007f"  # tags
    "]"
)


def printable(text: object, keep: str = "") -> str:
    r"""Return a text with its control characters as escapes, such as ``\x1b`` and ``\u202e``.

    The result can be printed to a terminal; see `rich_text` for a console of rich.

    Args:
        text: The text, or an object with a text.
        keep: Control characters to keep, for example ``"\n\t"`` for a text of several lines.
    """

    def escaped(found: re.Match[str]) -> str:
        character = found[0]
        return character if character in keep else character.encode("unicode_escape").decode()

    return _HIDDEN.sub(escaped, str(text))


def shell_word(text: object) -> str:
    """Return a path as one word of a command that a person copies into a shell."""
    return shlex.quote(printable(text))


def printable_lines(text: object) -> str:
    """Return a text of several lines as `printable` does, with its line ends and tabs."""
    return printable(text, keep="\n\t")


def rich_text(text: object, keep: str = "") -> Text:
    """Return a text for a console or a table of rich, whose markup is not interpreted.

    Args:
        text: See `printable`.
        keep: See `printable`.
    """
    from rich.text import Text

    return Text(printable(text, keep))


class PrintableFormatter(logging.Formatter):
    """Formats log records, with their tracebacks, as `printable_lines`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        return printable_lines(super().format(record))


class PrintableRecord(logging.LogRecord):
    """Represents a log record whose message is `printable_lines`, for handlers of libraries."""

    @override
    def getMessage(self) -> str:
        """Return the message."""
        return printable_lines(super().getMessage())


def make_messages_printable() -> None:
    """Escape control characters in all log messages and warnings of this process.

    Libraries log names in files, for example transformers those in the configuration of a model,
    and some have handlers of their own.
    """
    logging.setLogRecordFactory(PrintableRecord)
    if logging.lastResort is not None:  # prints the warnings of all libraries
        logging.lastResort.setFormatter(PrintableFormatter())
    warnings.formatwarning = _format_warning


_plain_warning = warnings.formatwarning


def _format_warning(*arguments: Any, **options: Any) -> str:
    return printable_lines(_plain_warning(*arguments, **options))
