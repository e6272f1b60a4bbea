"""Defines the contract of an environment as tests, which also packages outside of visenv can run.

In a test file::

    class TestMine(EnvContract):
        def make(self):
            return gym.make("mine/Task-v0")

or ``check_all(lambda: gym.make("mine/Task-v0"))`` anywhere. Each check takes a function that makes
the environment with `gym.make`, and raises an AssertionError with the expected and the actual
result. The samples must have exact ground truth, because the oracle uses it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from gymnasium.utils.env_checker import check_env

from visenv.testing.players import (
    check_empty_turns_earn_little,
    check_oracle_gets_the_top_reward,
    check_oracle_keeps_to_the_request,
    check_random_turns_rarely_reach_the_top,
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
    require_hypothesis,
)


def check_conforms(make_env: MakeEnv) -> None:
    """Check that Gymnasium's own checker reports nothing, with and without the wrappers."""
    env = make_env()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
        warnings.filterwarnings("ignore", ".*different from the unwrapped version")
        check_env(env)


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
    check_random_turns_rarely_reach_the_top,
    check_empty_turns_earn_little,
    check_rescores,
)
"""All checks of the contract."""


def check_all(make_env: MakeEnv) -> None:
    """Run all checks of the contract; stop at the first check that fails.

    Raises:
        AssertionError: If a check fails.
        ConfigurationError: If the package hypothesis (extra ``validate``) is not installed.
    """
    require_hypothesis()
    for check in CHECKS:
        check(make_env)


class EnvContract:
    """Runs the contract as a test class: subclass it with a name that begins with Test."""

    def make(self) -> Env:
        """Make the environment with `gym.make`."""
        raise NotImplementedError("Write make(), which returns gym.make(<your environment's id>).")


def _as_test(check: Callable[[MakeEnv], None]) -> Callable[[EnvContract], None]:
    def test(self: EnvContract) -> None:
        check(self.make)

    test.__doc__ = check.__doc__
    return test


for _check in CHECKS:
    setattr(EnvContract, _check.__name__.replace("check_", "test_", 1), _as_test(_check))
