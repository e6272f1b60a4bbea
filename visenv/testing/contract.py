"""The contract of an environment, as tests that anyone can run on their own.

In a test file::

    class TestMine(EnvContract):
        def make(self):
            return gym.make("mine/Task-v0")

or ``check_all(lambda: gym.make("mine/Task-v0"))`` anywhere. Each check takes a function that makes
the environment with `gym.make` and raises an AssertionError that says what was expected and what
was seen. The samples must have exact ground truth (the oracle is measured by it).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from gymnasium.utils.env_checker import check_env

from visenv.testing.players import (
    check_oracle_gets_the_top_reward,
    check_oracle_keeps_to_the_request,
    check_random_does_not,
)
from visenv.testing.record import Env, MakeEnv
from visenv.testing.rescoring import check_rescores
from visenv.testing.sameness import (
    check_deterministic,
    check_differs_across_seeds,
    check_pickles_mid_episode,
    check_rebuilds_from_json,
    check_shares_no_memory,
)
from visenv.testing.survival import (
    check_survives_any_text,
    check_survives_hostile_text,
    check_survives_huge_calls,
)


def check_conforms(make_env: MakeEnv) -> None:
    """Gymnasium's own checker finds nothing, not even a warning, with and without the wrappers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make_env().unwrapped)
        warnings.filterwarnings("ignore", ".*different from the unwrapped version")
        check_env(make_env())


CHECKS = (
    check_conforms,
    check_deterministic,
    check_differs_across_seeds,
    check_shares_no_memory,
    check_survives_hostile_text,
    check_survives_any_text,
    check_survives_huge_calls,
    check_pickles_mid_episode,
    check_rebuilds_from_json,
    check_oracle_gets_the_top_reward,
    check_oracle_keeps_to_the_request,
    check_random_does_not,
    check_rescores,
)
"""The whole contract."""


def check_all(make_env: MakeEnv) -> None:
    """Run the whole contract; stops at the first check that fails."""
    for check in CHECKS:
        check(make_env)


class EnvContract:
    """The contract as a test class: subclass it under a name that begins with Test."""

    def make(self) -> Env:
        """Make the environment, with `gym.make`."""
        raise NotImplementedError("Write make(), which returns gym.make(<your environment's id>).")


def _as_test(check: Callable[[MakeEnv], None]) -> Callable[[EnvContract], None]:
    def test(self: EnvContract) -> None:
        check(self.make)

    test.__doc__ = check.__doc__
    return test


for _check in CHECKS:
    setattr(EnvContract, _check.__name__.replace("check_", "test_", 1), _as_test(_check))
