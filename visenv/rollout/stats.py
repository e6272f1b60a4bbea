"""Measures counts and times of a rollout while it runs."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType


class ConcurrencyGauge:
    """Counts the active ``with`` blocks of the gauge, and measures for how long they are active.

    Attributes:
        now: Number of blocks that are active now.
    """

    def __init__(self) -> None:
        self.now = 0
        self.reset()

    def reset(self) -> None:
        """Set the times to 0; blocks that are active now continue to count."""
        self._sum = 0.0
        self._busy = 0.0
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the sum over all blocks of the seconds in which the block was active."""
        self._pass()
        return self._sum

    @property
    def busy(self) -> float:
        """Return the seconds in which at least one block was active."""
        self._pass()
        return self._busy

    def _pass(self) -> None:
        """Add the time since the last update to the sums."""
        now = time.monotonic()
        if self.now:
            self._sum += self.now * (now - self._since)
            self._busy += now - self._since
        self._since = now

    def __enter__(self) -> None:
        self._pass()
        self.now += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pass()
        self.now -= 1


class RolloutStats:
    """Measures statistics of the episodes that a `Collector` plays.

    Attributes:
        waiting: Episodes that wait because of the limit `concurrency`.
        playing: Episodes in flight, including episodes that wait for deferred reward terms.
        sampling: Turns that the policy is sampling.
        stepping: Calls of environments.
        scoring: Episodes that wait for deferred reward terms.
    """

    def __init__(self) -> None:
        self.waiting, self.playing = ConcurrencyGauge(), ConcurrencyGauge()
        self.sampling, self.stepping, self.scoring = (
            ConcurrencyGauge(),
            ConcurrencyGauge(),
            ConcurrencyGauge(),
        )
        self._begin()

    def _begin(self) -> None:
        for gauge in (self.waiting, self.playing, self.sampling, self.stepping, self.scoring):
            gauge.reset()
        self._counts = Counter(episodes=0, retries=0, cancelled=0)
        self._longest = 0.0
        self._sandbox_wait = 0.0

    def sampled(self, tokens: int) -> None:
        """Add a sampled turn with this number of tokens."""
        self._counts["tokens"] += tokens

    def waited_for_sandbox(self, seconds: float) -> None:
        """Add the seconds for which a step waited for workers of a sandbox."""
        self._sandbox_wait += seconds

    def aborted(self, boundary: str, again: bool) -> None:
        """Count an aborted attempt.

        Args:
            boundary: Name of the failure (`Failure.name`).
            again: Whether the episode is played again.
        """
        self._counts["aborted/" + boundary.replace(" ", "_")] += 1
        self._counts["retries"] += again

    def cancelled(self) -> None:
        """Count an episode that was cancelled."""
        self._counts["cancelled"] += 1

    def finished(self, seconds: float) -> None:
        """Count an episode that ended after this number of seconds, including retries."""
        self._counts["episodes"] += 1
        self._longest = max(self._longest, seconds)

    def take(self) -> dict[str, float]:
        """Return the measurements since the last call, and set all of them to 0.

        Returns:
            A mapping by name, which is empty if no episode was in flight:

            - counts: ``episodes`` (ended), ``retries``, ``cancelled``, and ``aborted/<name>``
              (attempts);
            - rates over the seconds in which episodes were in flight: ``episodes_per_second``,
              ``tokens_per_second`` (sampled), and ``engine_busy``, the share of these seconds in
              which a turn was being sampled;
            - means over these seconds: ``turns_in_flight``, ``calls_in_flight`` (of environments)
              and ``waiting`` (episodes that wait because of the limit `concurrency`);
            - means over episodes: ``sampling_seconds``, ``env_seconds``, ``scoring_seconds``,
              ``waiting_seconds``, and ``sandbox_wait_seconds`` (the part of ``env_seconds`` in
              which programs waited for a worker of a sandbox);
            - ``longest_seconds``, the duration of the longest episode.
        """
        seconds, episodes = self.playing.busy, self._counts["episodes"]
        measured: dict[str, float] = {}
        if seconds > 0:
            measured = {name: float(count) for name, count in self._counts.items()}
            tokens = measured.pop("tokens", 0.0)
            measured |= {
                "episodes_per_second": episodes / seconds,
                "tokens_per_second": tokens / seconds,
                "engine_busy": self.sampling.busy / seconds,
                "turns_in_flight": self.sampling.seconds / seconds,
                "calls_in_flight": self.stepping.seconds / seconds,
                "waiting": self.waiting.seconds / seconds,
                "sampling_seconds": self.sampling.seconds / max(episodes, 1),
                "env_seconds": self.stepping.seconds / max(episodes, 1),
                "scoring_seconds": self.scoring.seconds / max(episodes, 1),
                "waiting_seconds": self.waiting.seconds / max(episodes, 1),
                "sandbox_wait_seconds": self._sandbox_wait / max(episodes, 1),
                "longest_seconds": self._longest,
            }
        self._begin()
        return measured
