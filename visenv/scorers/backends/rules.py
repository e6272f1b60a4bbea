"""Defines `RulesBackend`, a pure function instead of a model."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.registration import load
from visenv.scorers.backend import InProcessBackend, ServiceLimits
from visenv.scorers.request import ScoreRequest


class RulesBackend(InProcessBackend):
    """Answers any request by a function. Worker processes create this backend themselves.

    The result of the function may depend only on the request; it may raise `TransientError`.

    Args:
        function: ``"module:function"``; the function takes a `ScoreRequest` and returns a value.
    """

    main_option = "function"
    limits = ServiceLimits(max_batch_size=256, timeout=60.0)
    shared_with_children = False
    batch_invariant = True

    def __init__(self, function: str) -> None:
        super().__init__()
        self._name = function
        self._function: Callable[[ScoreRequest], Any] = load("scorer", function)
        if not callable(self._function):
            raise ConfigurationError(f"{function!r} is not a function.")

    @property
    @override
    def model(self) -> str:
        """Return the function's name."""
        return self._name

    @property
    @override
    def version(self) -> str:
        """Return the hash of the function's source, so that a cache is not used after a change."""
        try:
            source = inspect.getsource(self._function)
        except (OSError, TypeError):  # defined in an interactive session, or a callable object
            return ""
        return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()

    @override
    def compute(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        return [self._function(request) for request in requests]
