"""Writes an environment's samples as rows, or selects the difficult ones."""

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
    """Folder to write the samples' documents to, as page images; use <folder>/documents for items
    that are played as armbench:<folder>.
    """

    def run(self) -> None:
        """Write the samples of an environment."""
        images = self.out.parent / "images"
        make, label = self._make_env(), self._env_label()
        step = part("questions")(make, images, label, self.documents)
        self._work(step, self._places(), self.concurrency)


@dataclass(frozen=True, kw_only=True)
class DifficultyCommand(PolicyOptions, EnvStepCommand):
    """Measure how often a policy is right, and keep the difficult samples.

    By playing, samples that are right 5 times of 5 are dropped (ARM-Thinker); by asking without the
    environment, samples with a mean of at least 0.5 over 8 answers are dropped (Groundlight). The
    output is a file for --places.
    """

    by: Literal["playing", "asking"] = "playing"
    """Play the environment, or only ask the question."""
    tries: int | None = None
    """Number of tries for each sample."""
    threshold: float | None = None
    """A sample is kept if its mean is below this value."""
    inclusive: bool = False
    """Also keep a sample whose mean is equal to the threshold."""
    metric: str = "accuracy"
    """The metric that measures how right an episode was."""
    max_tokens: int | None = None
    """Maximum number of tokens in a turn."""

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
        """Return the settings that differ from those of the paper."""
        own = {
            "samples": self.tries,
            "threshold": self.threshold,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "inclusive": self.inclusive,
        }
        return {name: value for name, value in own.items() if value is not None}
