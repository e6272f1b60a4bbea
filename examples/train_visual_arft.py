"""Visual-ARFT's recipe: GRPO teaches Qwen2.5-VL to repair images by code, or to search.

    python examples/train_visual_arft.py --task coding --tiny      # minutes on a CPU, no downloads
    python examples/train_visual_arft.py --task coding --tiny --reward em     # compared with it
    python examples/train_visual_arft.py --task coding \
        --data mat_coding:<folder>?file=rft_agent_code_1_2k.json --held-out mat_coding:<folder>

The defaults are those of arXiv 2505.14246 (section 5) and, where it is silent, of its public
scripts. They train on single steps written down beforehand; here the model plays whole episodes.
`--tiny` builds a small model and first warms it up on an oracle that is often in a hurry and then
gives up; GRPO finds out that taking the steps pays.

Scores come as in tables 1, 3 and 4: baselines of the model as it is before RL (each answers without
the agent's steps), then what RL with the F1 or the exact-match reward made of it. The run's folder
gets results.json, warm-up/ and a folder for each reward. Run it again, with the other reward too:
what is done stays done, and the table shows all of it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

import visenv  # noqa: F401 - registers the environments
from visenv.algos.policy_gradient import GRPO
from visenv.algos.policy_gradient.injection import GroundTruthInjectedGRPO
from visenv.algos.sft import WarmUp
from visenv.algos.trainer import Optimisation, Rollouts, Trainer, TrainerConfig
from visenv.algos.trainer.config import Saving
from visenv.data.source import Source
from visenv.envs.arft.datasets.splits import AVERAGE, SCORES, SPLITS, split_scores
from visenv.envs.arft.search.world import EntitiesWorld
from visenv.evaluation import evaluate
from visenv.evaluation.summary import summarise
from visenv.makers import find_model
from visenv.makers import settings as keyword_arguments
from visenv.policy import Policy, TrainablePolicy
from visenv.registration import load
from visenv.rollout import Collector, Env
from visenv.types import Sampling

Task = Literal["coding", "search"]
Baseline = Literal["direct", "cot", "rag"]

ENVIRONMENTS = {"coding": "visenv/ArftCoding-v0", "search": "visenv/ArftSearch-v0"}

UNSEEN = (1000, 1100)
"""Made-up worlds to search that no training run sees."""

COLUMNS = [f"{column} {split}" for split in (*SPLITS, AVERAGE) for column in SCORES]


def _paper(steps: int, reported: int) -> TrainerConfig:
    """GRPO as it was launched; the paper names the 8 generations, the scripts all the rest.

    8 GPUs with a prompt each, accumulated twice, are 16 prompts to a step. What no script names has
    the default of TRL 0.14: learning rate, its linear decay, temperature, 256 tokens.
    """
    return TrainerConfig(
        steps=steps,
        rollouts=Rollouts(groups=16, group_size=8, temperature=1.0, max_tokens=256),
        optimisation=Optimisation(
            learning_rate=1e-6, schedule="linear", beta2=0.999, max_grad_norm=1.0
        ),
        saving=Saving(checkpoint_every=reported, keep_checkpoints=steps // reported + 1),
    )


@dataclass(frozen=True)
class VisualARFT:
    """Train a model to repair images by code, or to search, as Visual-ARFT does."""

    folder: Path
    """Where everything goes."""
    trainer: TrainerConfig
    """Steps of RL, sampling, optimisation, what is saved."""
    task: tyro.conf.Suppress[Task] = "coding"
    reward: Literal["f1", "em"] = "f1"
    """What an answer is paid by: token F1, or exact match as in table 3."""
    model: str = "Qwen/Qwen2.5-VL-7B-Instruct"
    """A checkpoint folder, a hub name (the paper's other one is its 3B), or that of a tiny one."""
    data: str = "procedural"
    """What to train on; the paper's are mat_coding: and mat_search:<folder>."""
    held_out: str = "procedural"
    """What to evaluate on."""
    option: tuple[str, ...] = ()
    """Further arguments of the environment, key=value."""
    stage: str = "train"
    """Preset of the environment in training: images of 401,408 pixels (scripts), 5 turns."""
    evaluation: str = "eval"
    """Preset in evaluation."""
    baselines: tuple[Baseline, ...] = ("direct", "cot")
    """Scored before RL, see `visenv.policies.baselines`; "rag" needs something to search."""
    instruct: bool = True
    """Whether baselines tell the model in words what to do."""
    episodes: int = 256
    """Of each evaluation, where the data is procedural."""
    tokens: int = 1024
    """Most tokens of a turn in evaluation (scripts)."""
    device: str = "cuda"
    """Device of the policy."""
    dtype: str = "bfloat16"
    """Of the weights."""
    warm_up: WarmUp = field(default_factory=WarmUp)
    """Before RL."""
    grpo: GRPO = field(default_factory=lambda: GRPO(clip_high=0.2, kl_weight=0.04))
    """The algorithm of RL; the weight of the reference is TRL's."""
    inject_ground_truth: bool = False
    """Pay one episode of each group, drawn at random, as if it were the ground truth. The scripts
    for coding do so, the paper says nothing of it: for replication alone."""


PAPER: dict[Task, VisualARFT] = {
    # 10 epochs of 3,400 rows; the tables are of checkpoint 1400.
    "coding": VisualARFT(Path("runs/visual-arft-coding"), _paper(2120, 1400)),
    # 400 epochs of 63 rows; the tables are of checkpoint 200.
    "search": VisualARFT(
        Path("runs/visual-arft-search"),
        _paper(1600, 200),
        task="search",
        tokens=2048,
        baselines=("direct", "cot", "rag"),
    ),
}


def _tiny(paper: VisualARFT, option: tuple[str, ...]) -> VisualARFT:
    warm_up = Optimisation(2e-3, schedule="cosine", warmup_steps=30, beta2=0.95, weight_decay=0.01)
    return replace(
        paper,
        folder=Path(f"{paper.folder}-tiny"),
        model="tiny-arft",
        option=option,
        stage="tiny",
        evaluation="tiny",
        episodes=96,
        tokens=64,
        instruct=False,
        device="cpu",
        dtype="float32",
        warm_up=WarmUp(1024, batch_size=32, trainer=TrainerConfig(steps=160, optimisation=warm_up)),
        trainer=TrainerConfig(
            steps=16,
            rollouts=Rollouts(groups=6, group_size=8, max_tokens=64),
            optimisation=Optimisation(2e-4, schedule="linear", warmup_steps=5, beta2=0.99),
        ),
    )


TINY: dict[Task, VisualARFT] = {
    "coding": _tiny(
        PAPER["coding"], ('problems=["rotation180", "dark", "none", "rotation180+dark"]',)
    ),
    "search": _tiny(PAPER["search"], ()),
}


class Run:
    """What `VisualARFT` tells, done; what was done before is loaded."""

    def __init__(self, settings: VisualARFT) -> None:
        self.settings = settings
        self.console = Console()
        settings.folder.mkdir(parents=True, exist_ok=True)
        self.policy: TrainablePolicy[Any] = load("policy", "transformers")(
            find_model(settings.model, settings.folder / "model"),
            device=settings.device,
            dtype=settings.dtype,
        )
        self._results = settings.folder / "results.json"
        self.scores: dict[str, dict[str, float]] = (
            json.loads(self._results.read_text("utf-8")) if self._results.exists() else {}
        )

    def __call__(self) -> None:
        """Warm up where asked for, score, train, and score again."""
        settings = self.settings
        make_env = self._maker(settings.stage, settings.data)
        settings.warm_up.apply(self.policy, make_env, settings.folder / "warm-up")
        for name in settings.baselines:
            baseline = load("policy", name)(self.policy, instruct=settings.instruct)
            self._score(f"baseline {name}", baseline)
        self._score("before RL", self.policy)
        self._train(settings.folder / settings.reward)
        self._score(f"after RL, {settings.reward} reward", self.policy)
        self.console.print(self._table())

    # ------------------------------------------------------------------ training

    def _train(self, folder: Path) -> None:
        settings = self.settings
        grpo = settings.grpo
        if settings.inject_ground_truth:
            grpo = GroundTruthInjectedGRPO(**asdict(grpo))
        self.console.rule(f"RL, {settings.reward} reward: {settings.trainer.steps} steps")
        trainer = Trainer(
            self.policy, grpo, settings.trainer, folder=folder, resume=folder.is_dir()
        )
        trainer.train(self._maker(settings.stage, settings.data))
        report(folder)

    # ------------------------------------------------------------------ its parts

    def _maker(self, stage: str, data: str | Source) -> Callable[[], Env]:
        given = keyword_arguments(self.settings.option)
        options = {"stage": stage, "reward": self.settings.reward, "data": data, **given}
        return partial(gym.make, ENVIRONMENTS[self.settings.task], **options)

    def _held_out(self) -> str | Source:
        """Of made-up worlds, those that none was trained on."""
        settings = self.settings
        if (settings.task, settings.held_out) != ("search", "procedural"):
            return settings.held_out
        return EntitiesWorld("tiny" if settings.evaluation == "tiny" else "default", worlds=UNSEEN)

    def _score(self, label: str, policy: Policy[Any]) -> None:
        """Greedy scores on the held-out items, every one counted; those without answer are told."""
        if label in self.scores:
            return
        make_env = self._maker(self.settings.evaluation, self._held_out())
        collector = Collector(make_env, policy, Sampling(0.0, self.settings.tokens))
        env = make_env()
        episodes = evaluate(collector, env, self.settings.episodes)
        collector.close()
        source = getattr(env.unwrapped, "source", None)
        unread = [str(problem) for problem in getattr(source, "problems", ())]
        self.scores[label] = split_scores(episodes, len(unread))
        self._results.write_text(json.dumps(self.scores, indent=2) + "\n", encoding="utf-8")
        self.console.print(label, self.scores[label])
        for item, status, reason in summarise(episodes, unread).failures:
            self.console.print(f"  {status}, counts 0: {item}: {reason}")

    def _table(self) -> Table:
        table = Table(title=f"{self.settings.task}, in percent")
        for name in ("", *COLUMNS):
            table.add_column(name, no_wrap=not name)
        for label, scores in self.scores.items():
            values = (100 * scores.get(name, math.nan) for name in COLUMNS)
            table.add_row(label, *(f"{value:.2f}" for value in values))
        return table


def report(folder: Path) -> None:
    """The reward of the first and the last steps."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    few = max(1, len(rows) // 5)
    for when, some in (("first", rows[:few]), ("last", rows[-few:])):
        reward = np.mean([row["reward"] for row in some])
        print(f"{when} {few} steps: reward {reward:.3f} of at most 2")


def main(words: Sequence[str] | None = None) -> None:
    """Read the settings, `--task` and `--tiny` first, and run."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--task", choices=[*ENVIRONMENTS], default="coding")
    first.add_argument("--tiny", action="store_true")
    chosen, rest = first.parse_known_args(sys.argv[1:] if words is None else words)
    default = (TINY if chosen.tiny else PAPER)[chosen.task]
    Run(tyro.cli(VisualARFT, args=rest, default=default, description=__doc__))()


if __name__ == "__main__":
    main()
