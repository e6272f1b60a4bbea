"""Every exception visenv raises, and nothing else.

::

    VisenvError
    ├── ConfigurationError (ValueError)     an option has a value it cannot have
    │   └── UnknownNameError (KeyError)     a name that is not registered; names the nearest
    ├── DataError                           a row or a file cannot be read; says which
    │   └── ImageError                      an image cannot be decoded, or is too large to try
    ├── EpisodeError                        an episode breaks one of its invariants
    ├── EpisodeOverError (ResetNeeded)      step() on an episode that has ended
    ├── ToolError                           a tool refuses; its text goes back to the policy
    ├── ServiceError                        a judge, tool server or simulator failed beyond retries
    ├── PolicyError                         a policy cannot answer (server, tokens, template)
    ├── RunError                            a run folder or a checkpoint cannot be used
    └── DivergedError                       a loss or a gradient is no longer a finite number
        └── SamplerError                    the sampler disagrees with the trainer on its own tokens

What a policy writes never raises out of `step`: it becomes an event and a message. `ToolError` is
caught by the environment, `ServiceError` aborts the episode; the others reach the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import gymnasium.error
from typing_extensions import override

from visenv.old_names import suggestion


class VisenvError(Exception):
    """Base of every error visenv raises on purpose."""


class ConfigurationError(VisenvError, ValueError):
    """Raised when an option has a value it cannot have."""


class UnknownNameError(ConfigurationError, KeyError):
    """Raised when a name is not among the known ones; the message names the nearest.

    For the old name of a setting it is the new one (`visenv.old_names`).

    Args:
        kind: What the name should be one of.
        given: The name.
        known: The known names.
        advice: A sentence that is added at the end.
    """

    def __init__(self, kind: str, given: str, known: Iterable[str], advice: str = "") -> None:
        names = sorted(known)
        new = suggestion(given, names)
        near = [new] if new else get_close_matches(given, names, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        listed = ", ".join(names) or "none is registered"
        more = f" {advice}" if advice else ""
        self._message = f"There is no {kind} called {given!r}.{hint} Known: {listed}.{more}"
        super().__init__(self._message)
        self._arguments = (kind, given, names, advice)

    @override
    def __str__(self) -> str:
        return self._message  # KeyError would print the repr

    @override
    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str], str]]:
        return (type(self), self._arguments)


class DataError(VisenvError):
    """Raised when a row or a file of a data set cannot be read; the message says which."""


class ImageError(DataError):
    """Raised when an image cannot be decoded, or holds too many pixels to try."""


class EpisodeError(VisenvError):
    """Raised when an episode or a segment breaks one of its invariants."""


class EpisodeOverError(VisenvError, gymnasium.error.ResetNeeded):
    """Raised by `step` before the first `reset` or after the episode has ended."""


class ToolError(VisenvError):
    """Raised by a tool that refuses a call; the text is shown to the policy."""


class ServiceError(VisenvError):
    """Raised when a service an episode needs (judge, server, simulator) failed beyond its retries.

    Args:
        boundary: The boundary that was crossed, for example ``"judge"`` or ``"search"``.
        reason: What went wrong, for a person.
    """

    def __init__(self, boundary: str, reason: str) -> None:
        super().__init__(boundary, reason)
        self.boundary = boundary
        self.reason = reason

    @override
    def __str__(self) -> str:
        return f"{self.boundary}: {self.reason}"


class PolicyError(VisenvError):
    """Raised when a policy cannot give a reply: its server, its tokens or its chat template."""


class RunError(VisenvError):
    """Raised when a run folder or a checkpoint cannot be used; the message says what to do."""


class DivergedError(VisenvError):
    """Raised when training meets a loss or a gradient that is not finite; says where it stopped."""


class SamplerError(DivergedError):
    """Raised when sampler and trainer give freshly sampled tokens too different probabilities."""
