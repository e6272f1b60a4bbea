"""ARM-Thinker's recipe on `visenv/ArmDoc-v0`: SFT cold start, GRPO stage 1, GRPO stage 2.

    python examples/train_arm_thinker.py --tiny
    python examples/train_arm_thinker.py --model Qwen/Qwen2.5-VL-7B-Instruct --device cuda \
        --dtype bfloat16 --data pdf:<folder> --demonstrations trajectories.jsonl

The defaults are the paper's (§3.3 and the public scripts). `--tiny` builds a small model and runs
on a CPU: made-up documents whose pages can be read at 96 px, demonstrated by an oracle that is
often in a hurry and then guesses without looking.

After the cold start each of `--arms` is a curriculum of its own, of the same number of steps
(figure 4): "two_stages" is the paper's, "accuracy_format" pays nothing for tools, "fixed_bonus"
pays the same for every episode with a call. All are compared on documents that none was trained on.
The run's folder gets results.json, ablation.png, cold-start/ and, for each arm, a folder with one
for each of its stages; run it again to go on.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import visenv  # noqa: F401 - registers the environments
from visenv.algos.policy_gradient import DAPO
from visenv.algos.sft import fit_once, play_demonstrations
from visenv.algos.trainer import Optimisation, Rollouts, TrainerConfig
from visenv.algos.trainer.curriculum import Curriculum, Stage
from visenv.episodes import read_episodes
from visenv.evaluation import evaluate
from visenv.evaluation.summary import summarise
from visenv.makers import find_model
from visenv.policy import TrainablePolicy
from visenv.registration import load
from visenv.rollout import Collector, Env
from visenv.seeding import seeds
from visenv.types import Episode, Sampling

Arm = Literal["two_stages", "accuracy_format", "fixed_bonus"]

TRAINED, HELD_OUT = (1_000, 9_800), (9_800, 10_000)
"""Procedural documents to train on, and others with names of the same length."""

WAYS = {"greedy": 0.0, "sampled": 1.0}
"""How the held-out episodes are played, and at what temperature."""

SHOWN = ("accuracy", "tool calls", "found", "reward")

ALGORITHM = DAPO(clip_high=0.2)
"""verl's defaults: GRPO with a symmetric clip and the mean over tokens; the paper keeps no KL."""

LABELS = {"stage1": "after stage 1", "stage2": "after stage 2"}
"""Of what a stage ends with; the other arms come "instead"."""


def _cold_start() -> TrainerConfig:
    """The recipe for LLaMA-Factory: one epoch (of 6000), 2e-5, cosine, a tenth of it to warm up."""
    optimisation = Optimisation(learning_rate=2e-5, schedule="cosine", warmup_steps=2)
    return TrainerConfig(steps=24, optimisation=optimisation)


def _rl() -> TrainerConfig:
    """The recipe for verl: 512 prompts, 16 episodes each, two minibatches, a constant 2e-6."""
    return TrainerConfig(
        steps=100,
        rollouts=Rollouts(groups=512, group_size=16, max_tokens=2048),
        optimisation=Optimisation(learning_rate=2e-6, minibatches=2),
    )


@dataclass(frozen=True)
class ArmThinker:
    """Train a judge of documents as ARM-Thinker does, and compare the rewards."""

    folder: Path = Path("runs/arm-thinker")
    """Where everything goes."""
    model: str = "Qwen/Qwen2.5-VL-7B-Instruct"
    """A checkpoint folder, a hub name, or the name of a tiny model."""
    device: str = "cuda"
    """Device of the policy."""
    dtype: str = "bfloat16"
    """Of the weights."""
    stage: str = "train"
    """Preset of the environment."""
    data: str = "procedural"
    """Documents to train on."""
    held_out: str = "procedural"
    """Documents to evaluate on; other ones."""
    demonstrations: Path | None = None
    """Episodes of a stronger policy (visenv data trajectories, visenv data filter); by default an
    oracle makes them."""
    oracle_episodes: int = 6000
    """Demonstrations that the oracle makes."""
    care: float = 1.0
    """Share of them in which it looks before it judges."""
    batch_size: int = 256
    """Demonstrations in a step of the cold start."""
    cold_start: TrainerConfig = field(default_factory=_cold_start)
    """SFT."""
    rl: TrainerConfig = field(default_factory=_rl)
    """GRPO, all stages of an arm together."""
    stage1: int = 30
    """Steps of stage 1, the first of them."""
    arms: tuple[Arm, ...] = ("two_stages", "accuracy_format", "fixed_bonus")
    """Rewards to compare."""
    episodes: int = 256
    """Held-out episodes of each evaluation."""


TINY = ArmThinker(
    folder=Path("runs/arm-tiny"),
    model="tiny-arm",
    device="cpu",
    dtype="float32",
    stage="tiny",
    oracle_episodes=1024,
    care=0.45,
    batch_size=64,
    cold_start=TrainerConfig(
        steps=150,
        optimisation=Optimisation(
            learning_rate=2e-3, schedule="cosine", warmup_steps=30, beta2=0.95, weight_decay=0.01
        ),
    ),
    rl=TrainerConfig(
        steps=30,
        rollouts=Rollouts(groups=16, group_size=8, max_tokens=64),
        optimisation=Optimisation(
            learning_rate=2e-4, schedule="linear", warmup_steps=5, beta2=0.99
        ),
    ),
    stage1=8,
)


class Run:
    """The cold start and the arms of an `ArmThinker`; what is done stays done."""

    def __init__(self, settings: ArmThinker) -> None:
        self.settings = settings
        self.console = Console()
        self.folder = settings.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.policy = self._make_policy()
        self._results = self.folder / "results.json"
        self.scores: dict[str, dict[str, float]] = (
            json.loads(self._results.read_text("utf-8")) if self._results.exists() else {}
        )

    def __call__(self) -> None:
        """Cold start, then every arm from there."""
        start = self._cold_start()
        self._score("after cold start")
        for arm in self.settings.arms:
            self.console.rule(f"{arm}: {self.settings.rl.steps} steps")
            self.policy.load_weights(start)
            self._curriculum(arm).train(self._score_stage)
        self._finish()

    # ------------------------------------------------------------------ training

    def _cold_start(self) -> Path:
        """SFT, or the weights of one that was done before; their folder."""
        settings = self.settings
        self.console.rule(f"cold start: {settings.cold_start.steps} steps")
        return fit_once(
            self.policy,
            settings.cold_start,
            self.folder / "cold-start",
            settings.batch_size,
            self._demonstrations,
        )

    def _curriculum(self, arm: Arm) -> Curriculum:
        """The stages of an arm: rewards, each for some of the steps."""
        rl, first = self.settings.rl, self.settings.stage1
        steps: dict[str, int] = {arm: rl.steps}
        if arm == "two_stages":
            steps = {"stage1": first, "stage2": rl.steps - first}
        stages = [
            Stage(reward, self._maker(reward), ALGORITHM, replace(rl, steps=count))
            for reward, count in steps.items()
            if count
        ]
        folder = self.folder / arm
        return Curriculum(self.policy, stages, folder=folder, resume=folder.is_dir())

    def _demonstrations(self) -> list[Episode]:
        settings = self.settings
        if settings.demonstrations is not None:
            return [self.policy.encode(each) for each in read_episodes(settings.demonstrations)]
        oracle = load("policy", "oracle")(care=settings.care, guess=True)
        drawn = seeds(np.random.SeedSequence(0), settings.oracle_episodes)
        return play_demonstrations(self.policy, oracle, self._maker("stage2"), drawn)

    # ------------------------------------------------------------------ what they share

    def _maker(self, reward: str, **changes: Any) -> Callable[[], Env]:
        settings = self.settings
        options = {"stage": settings.stage, "data": settings.data, "reward": reward, **changes}
        if options["data"] == "procedural":
            options.setdefault("documents", TRAINED)
        return partial(gym.make, "visenv/ArmDoc-v0", **options)

    def _score_stage(self, stage: Stage) -> None:
        self._score(LABELS.get(stage.name, f"{stage.name} instead"))

    def _score(self, label: str) -> None:
        """Greedy and sampled means on held-out documents, paid by stage 2's reward."""
        if label in self.scores:
            return
        make_env = self._maker("stage2", data=self.settings.held_out, documents=HELD_OUT)
        self.scores[label] = {
            f"{way} {name}": value
            for way, temperature in WAYS.items()
            for name, value in self._play(make_env, temperature).items()
        }
        self._results.write_text(json.dumps(self.scores, indent=2) + "\n", encoding="utf-8")
        self.console.print(label, self.scores[label])

    def _play(self, make_env: Callable[[], Env], temperature: float) -> dict[str, float]:
        sampling = Sampling(temperature, self.settings.rl.rollouts.max_tokens)
        collector = Collector(make_env, self.policy, sampling)
        means = summarise(evaluate(collector, make_env(), self.settings.episodes)).rows[0].means
        collector.close()
        return {name: round(means[name].value, 3) for name in SHOWN if name in means}

    def _make_policy(self) -> TrainablePolicy[Any]:
        settings = self.settings
        model = find_model(settings.model, self.folder / "model")
        policy: TrainablePolicy[Any] = load("policy", "transformers")(
            model, device=settings.device, dtype=settings.dtype
        )
        return policy

    def _finish(self) -> None:
        table = Table("", *SHOWN, title="Held-out documents, greedy / sampled")
        for label, scores in self.scores.items():
            pairs = [[scores.get(f"{way} {name}", math.nan) for way in WAYS] for name in SHOWN]
            table.add_row(label, *(f"{greedy:.3f} / {sampled:.3f}" for greedy, sampled in pairs))
        self.console.print(table)
        arms = {arm: self._curriculum(arm).metrics() for arm in self.settings.arms}
        draw(arms, self.folder / "ablation.png")


def draw(arms: Mapping[Arm, Sequence[Mapping[str, Any]]], picture: Path) -> None:
    """Figure 4 in small: accuracy and tool calls by step, one line for each arm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    charts = figure.subplots(1, 2)
    for arm, rows in arms.items():
        for chart, name in zip(charts, ("metrics/accuracy", "tools/tool_calls"), strict=True):
            values = np.array([row[name] for row in rows])
            smooth = [values[max(0, end - 5) : end].mean() for end in range(1, len(values) + 1)]
            chart.plot(range(1, len(values) + 1), smooth, label=arm.replace("_", " "))
            chart.set_title(name.rpartition("/")[2].replace("_", " "))
            chart.set_xlabel("step")
    charts[0].legend()
    figure.savefig(picture, dpi=120)


def main(words: Sequence[str] | None = None) -> None:
    """Read the settings, `--tiny` first, and run."""
    given = list(sys.argv[1:] if words is None else words)
    tiny = "--tiny" in given
    default = TINY if tiny else ArmThinker()
    given = [word for word in given if word != "--tiny"]
    Run(tyro.cli(ArmThinker, args=given, default=default, description=__doc__))()


if __name__ == "__main__":
    main()
