"""Defines `Failure`, the reason why a call has no result, as a value.

Unlike an exception, a failure can be passed between threads, processes and machines, and it is
saved with the episode that it aborted.
"""

from __future__ import annotations

from traceback import format_exception
from typing import Literal, NamedTuple

from typing_extensions import override

from visenv.errors import (
    ConfigurationError,
    DataError,
    PolicyError,
    ServiceError,
    VisenvError,
)
from visenv.terminal import printable_lines
from visenv.user_code import bug_in

FailureSource = Literal[
    "data", "policy", "service", "configuration", "environment", "timeout", "worker"
]
"""The part that failed. ``"timeout"`` is an environment that did not reply in time, and
``"worker"`` an environment whose process or machine ended.
"""

_REUSABLE = frozenset({"data", "policy", "service", "configuration"})


class Failure(NamedTuple):
    """Describes why a call has no result.

    Attributes:
        source: The part that failed.
        name: The service that failed (``"judge"``), or the class of the error.
        reason: The cause, in words for a person.
        traceback: The traceback of an unexpected exception, ``""`` for errors raised on purpose.
        bug: A sentence about the bug of a user's code that is the cause, which names the object,
            its file and its line (`visenv.user_code`); ``""`` if there is none.
    """

    source: FailureSource
    name: str
    reason: str
    traceback: str = ""
    bug: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the failure that describes an exception."""
        if isinstance(error, ServiceError):
            return cls("service", error.boundary, error.reason)
        source = _source(error)
        name, reason = type(error).__name__, str(error) or repr(error)
        if source != "environment":
            return cls(source, name, reason)
        return cls(source, name, reason, "".join(format_exception(error)), bug_in(error))

    @property
    def environment_is_usable(self) -> bool:
        """Return whether the environment can play another episode."""
        return self.source in _REUSABLE

    @property
    def is_permanent(self) -> bool:
        """Return whether another attempt would fail in the same way, as for an unreadable row."""
        return self.source in ("data", "configuration")

    @override
    def __str__(self) -> str:
        return printable_lines(f"{self.name}: {self.reason}")


def _source(error: BaseException) -> FailureSource:
    if isinstance(error, ConfigurationError):
        return "configuration"
    if isinstance(error, DataError):
        return "data"
    if isinstance(error, PolicyError):
        return "policy"
    # Other errors of visenv are raised on purpose, and the environment is in a known state after
    # them.
    return "service" if isinstance(error, VisenvError) else "environment"
