"""Tests `Failure`: the failed part, whether the environment is usable, and whether to retry."""

from __future__ import annotations

import pickle

import pytest

from visenv.errors import (
    ConfigurationError,
    DataError,
    ImageError,
    PolicyError,
    ServiceError,
    UnknownNameError,
    VisenvError,
)
from visenv.types import Failure


@pytest.mark.parametrize(
    ("error", "source", "name", "usable", "permanent"),
    [
        (ServiceError("judge", "no reply"), "service", "judge", True, False),
        (PolicyError("no engine"), "policy", "PolicyError", True, False),
        (DataError("row 3"), "data", "DataError", True, True),
        (ImageError("too large"), "data", "ImageError", True, True),
        (ConfigurationError("turns"), "configuration", "ConfigurationError", True, True),
        (
            UnknownNameError("tool", "zom", ["zoom"]),
            "configuration",
            "UnknownNameError",
            True,
            True,
        ),
        (VisenvError("a row"), "service", "VisenvError", True, False),
        (SystemExit(2), "environment", "SystemExit", False, False),
        (KeyError(), "environment", "KeyError", False, False),
    ],
)
def test_failure_of_an_error(
    error: BaseException, source: str, name: str, usable: bool, permanent: bool
) -> None:
    failure = Failure.of(error)
    assert (failure.source, failure.name) == (source, name)
    assert (failure.environment_is_usable, failure.is_permanent) == (usable, permanent)
    assert failure.reason
    assert bool(failure.traceback) == (source == "environment")
    assert pickle.loads(pickle.dumps(failure)) == failure


def test_failure_keeps_the_traceback_of_an_unexpected_error() -> None:
    def broken() -> None:
        raise ZeroDivisionError("by hand")

    with pytest.raises(ZeroDivisionError) as caught:
        broken()
    failure = Failure.of(caught.value)
    assert "in broken" in failure.traceback
    assert failure.traceback.endswith("ZeroDivisionError: by hand\n")
    assert str(failure) == "ZeroDivisionError: by hand"


@pytest.mark.parametrize(("source", "usable"), [("timeout", False), ("worker", False)])
def test_failure_of_a_worker_makes_the_environment_unusable(source: str, usable: bool) -> None:
    assert Failure(source, source, "gone").environment_is_usable is usable  # type: ignore[arg-type]
