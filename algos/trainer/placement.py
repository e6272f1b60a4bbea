"""Defines where the environments of evaluations and demonstrations run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from visenv.policy import EnginePolicy, Policy
from visenv.rollout import Collector, Executor, MakeEnv, Mixture
from visenv.types import Sampling


class Placement(NamedTuple):
    """Defines where environments run, and how many of them at the same time.

    A training run has an executor of its own, whose environments stay open. Evaluations and
    demonstrations therefore make other executors, and close them.

    Attributes:
        make_executor: Makes an executor; None stands for this process, on the event loop.
        concurrency: Maximum number of episodes that are played at the same time.
    """

    make_executor: Callable[[], Executor | None] = lambda: None
    concurrency: int = 128

    def collector(
        self, make_env: MakeEnv | Mixture, policy: Policy[Any], sampling: Sampling | None = None
    ) -> Collector:
        """Return a collector with a new executor.

        With threads or processes, it is deterministic, unless an engine samples.
        """
        executor = self.make_executor()
        return Collector(
            make_env,
            policy,
            sampling,
            self.concurrency,
            executor=executor,
            deterministic=executor is not None and not isinstance(policy, EnginePolicy),
        )
