"""Defines all exceptions of visenv.

::

    VisenvError
    ├── ConfigurationError (ValueError)     an option has an invalid value
    │   ├── UnknownNameError (KeyError)     a name is not registered; suggests the nearest name
    │   └── UntrustedNameError              a received file names code, a program or a model
    ├── DataError                           a row or a file cannot be read; names it
    │   ├── FileRefusedError (OSError)      a file is not a regular file, or is too large to read
    │   └── ImageError                      an image cannot be decoded, or is too large to decode
    ├── CodeError                           a reward term, tool, environment or policy has a bug
    ├── EpisodeError                        an episode violates one of its invariants
    ├── EpisodeOverError (ResetNeeded)      step() was called after the end of the episode
    ├── ToolError                           a tool rejects a call; the policy reads the text
    ├── ServiceError                        a judge, tool server or simulator failed
    ├── PolicyError                         a policy cannot answer (server, tokens, template)
    ├── DiskError (OSError)                 a file cannot be written; names it and the free space
    ├── RunError                            a run folder or a checkpoint cannot be used
    └── DivergedError                       a loss or a gradient is not a finite number
        └── SamplerError                    sampler and trainer disagree about sampled tokens

The text of a policy never makes `step` raise: it becomes an event and a message. The environment
catches `ToolError`, and `ServiceError` aborts the episode; all other errors reach the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import gymnasium.error
from typing_extensions import override

from visenv.terminal import printable_lines


class VisenvError(Exception):
    """Base class of all errors that visenv raises on purpose.

    A message may quote a file or a server. Its control characters are shown as escapes
    (`visenv.terminal.printable`).
    """

    @override
    def __str__(self) -> str:
        return printable_lines(super().__str__())


class ConfigurationError(VisenvError, ValueError):
    """Raised when an option has an invalid value."""


class UnknownNameError(ConfigurationError, KeyError):
    """Raised when a name is unknown; the message suggests the nearest known name.

    Args:
        kind: The kind of thing that the name refers to, for example ``"policy"``.
        given: The name.
        known: The known names.
        advice: A sentence that is appended to the message.
    """

    def __init__(self, kind: str, given: str, known: Iterable[str], advice: str = "") -> None:
        names = sorted(known)
        near = _nearest(given, names)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(names) or "none is registered"
        more = f" {advice}" if advice else ""
        self._message = f"There is no {kind} called {given!r}.{hint} Known: {listed}.{more}"
        super().__init__(self._message)
        self._arguments = (kind, given, names, advice)

    @override
    def __str__(self) -> str:
        return printable_lines(self._message)  # KeyError.__str__ would return the repr

    @override
    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str], str]]:
        return (type(self), self._arguments)


_VERSION = re.compile(r"-v\d+$")


def _nearest(given: str, names: Sequence[str]) -> list[str]:
    """Return the name that is most like a given one, without regard to case, or an empty list.

    An id is also found without its namespace and version: ``zoomvqa`` for ``visenv/ZoomVQA-v0``.
    """
    forms: dict[str, str] = {}
    for name in names:
        short = _VERSION.sub("", name.rpartition("/")[2])
        for form in (name, short):
            forms.setdefault(form.casefold(), name)
    found = get_close_matches(given.casefold(), forms, n=1, cutoff=0.4)
    return [forms[found[0]]] if found else []


class UntrustedNameError(ConfigurationError):
    """Raised when a received file names an object that only a person may choose.

    Args:
        file: The file, as at the start of a sentence.
        what: The kind of the object, for example ``"data set"``.
        name: The name in the file.
    """

    def __init__(self, file: str, what: str, name: str) -> None:
        super().__init__(
            f"{file} names the {what} {name!r:.200}, which is not registered. A file does not "
            "choose code, programs, models or servers. If you trust it, allow its names for this "
            "call with --trust; in Python, pass trust=True or the objects that it names."
        )
        self._arguments = (file, what, name)

    @override
    def __reduce__(self) -> tuple[type[UntrustedNameError], tuple[str, str, str]]:
        return (type(self), self._arguments)


class DataError(VisenvError):
    """Raised when a row or a file of a data set cannot be read; the message names it."""


class FileRefusedError(DataError, OSError):
    """Raised when a file is a pipe, a device or a socket, or exceeds a limit.

    Args:
        path: The file.
        reason: The end of a sentence about it, which names the limit.

    Attributes:
        strerror: The reason, as for other errors of the system.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}.")
        self._arguments = (path, reason)
        self.strerror = reason

    @override
    def __reduce__(self) -> tuple[type[FileRefusedError], tuple[str, str]]:
        return (type(self), self._arguments)


class DiskError(VisenvError, OSError):
    """Raised when a file cannot be written, for example because the disk is full.

    Args:
        path: The file.
        number: The number of the system error.
        reason: The reason, which ends the sentence about the file.

    Attributes:
        errno: The number of the system error.
        strerror: The reason, as for other errors of the system.
    """

    def __init__(self, path: Path | str, number: int, reason: str) -> None:
        self._message = f"{path} cannot be written: {reason}"
        super().__init__(self._message)
        self._arguments = (str(path), number, reason)
        self.errno = number
        self.strerror = reason

    @override
    def __str__(self) -> str:
        return printable_lines(self._message)  # OSError.__str__ would begin with the number

    def with_advice(self, advice: str) -> DiskError:
        """Return the same error with a sentence that is added to its message."""
        path, number, reason = self._arguments
        return DiskError(path, number, f"{reason} {advice}")

    @override
    def __reduce__(self) -> tuple[type[DiskError], tuple[str, int, str]]:
        return (type(self), self._arguments)


class ImageError(DataError):
    """Raised when an image cannot be decoded, or has too many pixels to be decoded."""


class CodeError(VisenvError):
    """Raised when the code of a user has a bug; the message names the object, file and line."""


class EpisodeError(VisenvError):
    """Raised when an episode or a segment violates one of its invariants."""


class EpisodeOverError(VisenvError, gymnasium.error.ResetNeeded):
    """Raised by `step` before the first `reset` or after the episode has ended."""


class ToolError(VisenvError):
    """Raised by a tool that rejects a call; the text is shown to the policy, unchanged."""

    @override
    def __str__(self) -> str:
        return Exception.__str__(self)


class ServiceError(VisenvError):
    """Raised when a service of an episode (judge, server, simulator) failed after all retries.

    Args:
        boundary: The service that failed, for example ``"judge"`` or ``"search"``.
        reason: The cause, in words for a person.
    """

    def __init__(self, boundary: str, reason: str) -> None:
        super().__init__(boundary, reason)
        self.boundary = boundary
        self.reason = reason

    @override
    def __str__(self) -> str:
        return printable_lines(f"{self.boundary}: {self.reason}")


class PolicyError(VisenvError):
    """Raised when a policy cannot reply because of its server, its tokens or its chat template."""


class RunError(VisenvError):
    """Raised when a run folder or a checkpoint cannot be used; the message says how to fix it."""


class DivergedError(VisenvError):
    """Raised when a loss or a gradient is not finite; the message says at which step."""


class SamplerError(DivergedError):
    """Raised when sampler and trainer give new tokens too different probabilities."""
