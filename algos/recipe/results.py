"""What came of each phase: scores on held-out episodes, steps and seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from visenv.episodes import write_episodes
from visenv.evaluation import evaluate
from visenv.evaluation.summary import Row, summarise
from visenv.files import replacing
from visenv.policy import Policy
from visenv.rollout import Collector, Env
from visenv.types import Episode, Sampling


@dataclass(frozen=True)
class Score:
    """Means over the held-out episodes; greedy unless it says sampled.

    Attributes:
        episodes: How many.
        reward: Reward.
        accuracy: The answer's score, 0 to 1.
        interval: Half width of the 95 % interval of `accuracy`.
        sampled_reward: Reward at temperature 1.
        sampled_accuracy: The answer's score at temperature 1.
        zoomed: Share of episodes with a successful tool call.
        hit: Share whose crop held the whole detail; None where the truth has no box.
    """

    episodes: int
    reward: float
    accuracy: float
    interval: float
    sampled_reward: float
    sampled_accuracy: float
    zoomed: float
    hit: float | None

    @classmethod
    def measure(
        cls,
        policy: Policy[Any],
        make_env: Callable[[], Env],
        episodes: int,
        max_tokens: int,
        keep: Path,
    ) -> Score:
        """Play the held-out episodes twice, and keep the greedy ones in the file `keep`."""
        played = [
            _play(policy, make_env, episodes, Sampling(temperature, max_tokens))
            for temperature in (0.0, 1.0)
        ]
        write_episodes(keep, played[0])
        greedy, sampled = (summarise(each).rows[0] for each in played)
        accuracy = greedy.means["accuracy"]
        return cls(
            greedy.episodes,
            greedy.means["reward"].value,
            accuracy.value,
            accuracy.half_width,
            sampled.means["reward"].value,
            sampled.means["accuracy"].value,
            greedy.means["zoomed"].value,
            _optional(greedy, "hit"),
        )

    def __str__(self) -> str:
        return (
            f"greedy accuracy {self.accuracy:.3f} ± {self.interval:.3f}, "
            f"sampled {self.sampled_accuracy:.3f}, reward {self.reward:.3f}"
        )


class Results:
    """The results so far, kept in a JSON file after each change.

    Attributes:
        scores: By label, in the order they were measured.
        steps: Steps of each finished phase.
        seconds: Seconds that the steps of each finished phase took.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        kept: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.scores = {label: Score(**row) for label, row in kept.get("scores", {}).items()}
        self.steps: dict[str, int] = kept.get("steps", {})
        self.seconds: dict[str, float] = kept.get("seconds", {})

    def add(self, label: str, score: Score) -> None:
        """Keep a score."""
        self.scores[label] = score
        self._save()

    def finish(self, phase: str, steps: int, seconds: float) -> None:
        """Keep what a phase took."""
        self.steps[phase] = steps
        self.seconds[phase] = seconds
        self._save()

    def table(self) -> Table:
        """The scores, one row each."""
        columns = ("accuracy", "sampled accuracy", "reward", "sampled reward", "zoomed", "hit")
        table = Table("", *columns, title="Held-out episodes, greedy unless sampled")
        for row in self._rows():
            table.add_row(
                *(each if isinstance(each, str) else _number(each) for each in row.values())
            )
        return table

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "": label,
                "accuracy": score.accuracy,
                "sampled accuracy": score.sampled_accuracy,
                "reward": score.reward,
                "sampled reward": score.sampled_reward,
                "zoomed": score.zoomed,
                "hit": score.hit,
            }
            for label, score in self.scores.items()
        ]

    def _save(self) -> None:
        kept = {
            "rows": self._rows(),
            "scores": {label: asdict(score) for label, score in self.scores.items()},
            "steps": self.steps,
            "seconds": self.seconds,
        }
        with replacing(self._path) as partial:
            partial.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def _play(
    policy: Policy[Any], make_env: Callable[[], Env], episodes: int, sampling: Sampling
) -> Sequence[Episode]:
    collector = Collector(make_env, policy, sampling)
    env = make_env()
    played = evaluate(collector, env, episodes)
    collector.close()
    env.close()
    return played


def _optional(row: Row, name: str) -> float | None:
    return row.means[name].value if name in row.means else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
