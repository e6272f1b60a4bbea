"""How well the time of sampling is used: counts and times, taken cheaply as it goes on."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType


class Gauge:
    """How many things of one kind are going on; each is a ``with`` block."""

    def __init__(self) -> None:
        self.now = 0
        self.reset()

    def reset(self) -> None:
        """Begin to measure anew; what is going on goes on."""
        self._sum = 0.0
        self._busy = 0.0
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds that all of them took together."""
        self._pass()
        return self._sum

    @property
    def busy(self) -> float:
        """Seconds in which there was at least one."""
        self._pass()
        return self._busy

    def _pass(self) -> None:
        """Account for the time since the number last changed."""
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


class Meter:
    """Measures a `Collector`.

    Attributes:
        waiting: Episodes that wait for their turn to begin.
        playing: Episodes in flight.
        sampling: Turns the policy is taking.
        stepping: Calls of environments.
    """

    def __init__(self) -> None:
        self.waiting, self.playing = Gauge(), Gauge()
        self.sampling, self.stepping = Gauge(), Gauge()
        self._begin()

    def _begin(self) -> None:
        for gauge in (self.waiting, self.playing, self.sampling, self.stepping):
            gauge.reset()
        self._counts = Counter(episodes=0, retries=0, cancelled=0)
        self._longest = 0.0

    def sampled(self, tokens: int) -> None:
        """A turn of so many tokens was sampled."""
        self._counts["tokens"] += tokens

    def aborted(self, boundary: str, again: bool) -> None:
        """An episode was aborted at that boundary, and is played again or not."""
        self._counts["aborted/" + boundary.replace(" ", "_")] += 1
        self._counts["retries"] += again

    def cancelled(self) -> None:
        """An episode was given up, as nobody waits for it any more."""
        self._counts["cancelled"] += 1

    def finished(self, seconds: float) -> None:
        """An episode has ended after so many seconds, retries included."""
        self._counts["episodes"] += 1
        self._longest = max(self._longest, seconds)

    def take(self) -> dict[str, float]:
        """What was measured since the last time.

        Returns:
            ``episodes`` (ended), ``retries``, ``cancelled``, and attempts that were
            ``aborted/<boundary>``: counts. ``episodes_per_second`` and ``tokens_per_second``
            (sampled), of the seconds in which episodes were in flight. ``engine_busy``: the share
            of those in which a turn was being sampled. ``turns_in_flight``, ``calls_in_flight``
            (of environments) and ``waiting`` (to begin): means over them. ``sampling_seconds``,
            ``env_seconds`` and ``waiting_seconds`` of an episode: means; and the
            ``longest_seconds`` one took. Nothing where nothing was played.
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
                "waiting_seconds": self.waiting.seconds / max(episodes, 1),
                "longest_seconds": self._longest,
            }
        self._begin()
        return measured
