"""The main job, phase by phase; each phase is done once, and a stopped job goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from visenv.algorithm import Algorithm
from visenv.errors import RunError
from visenv.makers import env_maker, find_model, split_of
from visenv.policy import EnginePolicy, TrainablePolicy
from visenv.registration import load
from visenv.rollout import Env
from visenv.seeding import seeds
from visenv.types import Episode
from visenv.viewer import write_report

from ..sft import SFT, play_demonstrations
from ..trainer import Trainer, TrainerConfig
from ..trainer.identity import differences
from .config import Train
from .curves import draw_curves
from .results import Results, Score

_DEMONSTRATIONS = 5


class Job:
    """Runs the phases of `Train` and keeps their results in the run's folder."""

    def __init__(self, train: Train) -> None:
        self.train = train
        self.folder = train.folder
        self.console = Console()
        self._claim_folder()
        self.results = Results(self.folder / "results.json")
        self.policy = self._make_policy()
        self.make_env = self._maker(train.data)
        self.make_evaluation = self._maker(train.evaluation_data or split_of(train.data, "val"))

    def run(self) -> None:
        """All phases, then the table and the report."""
        train = self.train
        rl_trainer = replace(train.rl, seed=train.seed)
        warm_up_trainer = replace(train.warm_up, seed=train.seed)
        self._evaluate("before SFT")
        self._phase("warm-up", SFT(), warm_up_trainer)
        self._evaluate("after SFT")
        warm = self._weights("warm-up")
        self._phase("rl", train.grpo, rl_trainer)
        self._evaluate("after GRPO")
        if train.controls:
            self._evaluate("after GRPO, random crops", self._maker_with_random_zoom())
            self.policy.load_weights(warm)
            steps = self._equal_steps()
            self._phase("more-sft", SFT(), replace(warm_up_trainer, steps=steps))
            self._evaluate("more SFT instead")
        self._finish()

    # ------------------------------------------------------------------ phases

    def _phase(self, name: str, algorithm: Algorithm, config: TrainerConfig) -> None:
        """Train, or, where it was done before, load what came of it."""
        done = self.results.seconds.get(name)
        if done is not None:
            self.policy.load_weights(self._weights(name))
            return
        folder, taught = self.folder / name, isinstance(algorithm, SFT)
        sampler = None if taught else self._sampler()
        trainer = Trainer(
            self.policy,
            algorithm,
            config,
            folder=folder,
            resume=folder.is_dir(),
            sampler=sampler,
        )
        self.console.rule(f"{name}: {config.steps} steps")
        if taught:
            trainer.fit(self._demonstrations, self.train.batch_size)
        else:
            trainer.train(self.make_env)
        if sampler is not None:
            sampler.close()
        self.results.finish(name, config.steps, _seconds(folder))

    @cached_property
    def _demonstrations(self) -> list[Episode]:
        """Oracle episodes, careful and hasty, tokenised."""
        stream = np.random.SeedSequence(self.train.seed, spawn_key=(_DEMONSTRATIONS,))
        oracle = load("policy", "oracle")(care=self.train.care)
        drawn = seeds(stream, self.train.demonstrations)
        return play_demonstrations(self.policy, oracle, self.make_env, drawn)

    def _equal_steps(self) -> int:
        """SFT steps that take the time RL took."""
        seconds, steps = self.results.seconds, self.results.steps
        return max(1, round(seconds["rl"] / (seconds["warm-up"] / steps["warm-up"])))

    def _weights(self, phase: str) -> Path:
        newest = max((self.folder / phase / "checkpoints").glob("step_*"), default=None)
        if newest is None:
            raise RunError(f"The phase {phase} of {self.folder} has no checkpoint.")
        return newest / "policy"

    # ------------------------------------------------------------------ evaluation

    def _evaluate(self, label: str, make_env: Callable[[], Env] | None = None) -> None:
        """Greedy and sampled scores on the held-out episodes, unless they are known."""
        if label in self.results.scores:
            return
        score = Score.measure(
            self.policy,
            make_env or self.make_evaluation,
            self.train.episodes,
            self.train.rl.rollouts.max_tokens,
            self.folder / "evaluation" / f"{label.replace(', ', '-').replace(' ', '-')}.jsonl",
        )
        self.results.add(label, score)
        self.console.print(f"{label}: {score}")

    # ------------------------------------------------------------------ its parts

    def _claim_folder(self) -> None:
        """Make the folder, or check that it holds this very job."""
        config = json.loads(json.dumps(asdict(self.train), default=str))
        for changing in ("resume", "runs", "name"):
            del config[changing]
        path = self.folder / "config.json"
        if not self.train.resume:
            if self.folder.exists() and any(self.folder.iterdir()):
                raise RunError(
                    f"{self.folder} exists already. Continue it with --resume, or choose another "
                    "--name."
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            return
        if not path.exists():
            raise RunError(f"There is no run {self.folder} to resume.")
        if changes := differences(json.loads(path.read_text(encoding="utf-8")), config):
            raise RunError(f"{self.folder} was begun with other settings: {'; '.join(changes)}.")

    @cached_property
    def _model(self) -> str | Path:
        """The checkpoint to begin with; a tiny one is built."""
        return find_model(self.train.model, self.folder / "model", self.train.seed)

    def _make_policy(self) -> TrainablePolicy[Any]:
        train = self.train
        policy: TrainablePolicy[Any] = load("policy", "transformers")(
            self._model, device=train.device, threads=train.threads
        )
        return policy

    def _sampler(self) -> EnginePolicy[Any] | None:
        """The engine that samples in the policy's place, if there is one."""
        if self.train.sampler == "transformers":
            return None
        engine: EnginePolicy[Any] = load("policy", self.train.sampler)(self._model)
        return engine

    def _maker(self, data: str | None, *more: str) -> Callable[[], Env]:
        return env_maker(self.train.env, (*self.train.option, *more), data)

    def _maker_with_random_zoom(self) -> Callable[[], Env]:
        data = self.train.evaluation_data or split_of(self.train.data, "val")
        return self._maker(data, "zoom=random")

    def _finish(self) -> None:
        rows = [self.folder / phase / "metrics.jsonl" for phase in ("warm-up", "rl", "more-sft")]
        draw_curves([path for path in rows if path.exists()], self.folder / "curves.png")
        self.console.print(self.results.table())
        self.console.print(f"Report: {write_report(self.folder)}")


def _seconds(folder: Path) -> float:
    """What the steps of a phase took, those before an interruption included."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    return float(sum(row["seconds/play"] + row["seconds/learn"] for row in rows))
