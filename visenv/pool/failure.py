"""Why a call brought no result, as a value: it crosses threads and processes, errors do not."""

from __future__ import annotations

from typing import Literal, NamedTuple

from visenv.errors import ConfigurationError, ServiceError, VisenvError

Fate = Literal["refused", "failed", "broken"]
"""The caller's fault; nobody's, and the environment goes on; or it must be replaced."""


class Failure(NamedTuple):
    """A call without a result.

    Attributes:
        boundary: What was crossed, as in `ServiceError`; for other errors the class name.
        reason: What went wrong, for a person.
        fate: What becomes of the environment.
    """

    boundary: str
    reason: str
    fate: Fate = "broken"

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure an exception stands for; only visenv's own leave the environment usable."""
        if isinstance(error, ServiceError):
            return cls(error.boundary, error.reason, "failed")
        if isinstance(error, ConfigurationError):
            return cls(type(error).__name__, str(error), "refused")
        fate: Fate = "failed" if isinstance(error, VisenvError) else "broken"
        return cls(type(error).__name__, str(error) or repr(error), fate)

    def __str__(self) -> str:
        return f"{self.boundary}: {self.reason}"
