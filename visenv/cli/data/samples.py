"""An environment's samples: written as rows, or measured and kept where they are difficult."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from visenv.cli.data.base import EnvStepCommand, PolicyOptions, part
from visenv.errors import ConfigurationError

if TYPE_CHECKING:
    from visenv.curation.step import CurationStep
    from visenv.policy import Policy


@dataclass(frozen=True, kw_only=True)
class QuestionsCommand(EnvStepCommand):
    """Write an environment's samples as rows: question, images, right response."""

    documents: Path | None = None
    """Folder to write the samples' documents to, as page images; <folder>/documents for items that
    are played as armbench:<folder>."""

    def run(self) -> None:
        """Write the samples of an environment."""
        images = self.out.parent / "images"
        make, label = self._make_env(), self._env_label()
        step = part("questions")(make, images, label, self.documents)
        self._work(step, self._places(), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class DifficultyCommand(PolicyOptions, EnvStepCommand):
    """Measure how often a policy is right, and keep what is difficult for it.

    By playing, what is right 5 times of 5 is dropped (ARM-Thinker); by asking straight, what has a
    mean of 0.5 or more in 8 answers (Groundlight). What is kept are places, for --places.
    """

    by: Literal["playing", "asking"] = "playing"
    """Play the environment, or ask the question without it."""
    tries: int | None = None
    """Tries of each sample."""
    threshold: float | None = None
    """A sample with a mean below it is kept."""
    inclusive: bool = False
    """Keep a mean equal to the threshold too."""
    metric: str = "accuracy"
    """The metric that says how right an episode was."""
    max_tokens: int | None = None
    """Most tokens in a turn."""

    def run(self) -> None:
        """Measure the difficulty of the samples."""
        with self._open_policy() as policy:
            step = self._playing(policy) if self.by == "playing" else self._asking(policy)
            self._work(step, self._places(), self.concurrency)

    def _playing(self, policy: Policy[Any]) -> CurationStep:
        from visenv.curation.difficulty import ARM_THINKER, PlayDifficulty

        measure = replace(ARM_THINKER, **self._measure())
        return PlayDifficulty(self._make_env(), policy, measure, self.metric, self._label())

    def _asking(self, policy: Policy[Any]) -> CurationStep:
        from visenv.curation.difficulty import GROUNDLIGHT, AskDifficulty

        source = self._source()
        if not hasattr(source, "score"):
            raise ConfigurationError("--by asking needs a data set, as --data NAME:FOLDER.")
        measure = replace(GROUNDLIGHT, **self._measure())
        return AskDifficulty(source, policy, measure, label=self._label())

    def _label(self) -> str:
        return f"{self._policy_label()} on {self._env_label()}"

    def _measure(self) -> dict[str, Any]:
        """Return the settings that differ from the paper's."""
        own = {
            "samples": self.tries,
            "threshold": self.threshold,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "inclusive": self.inclusive,
        }
        return {name: value for name, value in own.items() if value is not None}
