"""Tests the complete trainer: learning, exact resume, clean stops, and error messages."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from tests.environments import few
from tests.programs import ROOT, run_python
from visenv.algorithm import Algorithm, Batch, Loss
from visenv.algos.policy_gradient import GRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer import (
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    SelectionConfig,
    Trainer,
    TrainerConfig,
)
from visenv.episodes import read_episodes
from visenv.errors import ConfigurationError, DivergedError, RunError
from visenv.types import Group

SIX = TrainerConfig(
    steps=6,
    rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3),
    optimization=OptimizationConfig(learning_rate=0.02, schedule="cosine", warmup_steps=2),
    saving=SavingConfig(checkpoint_every=3, episodes_every=2),
)


# ---------------------------------------------------------------------------- learning


@pytest.mark.component("torch", "tensorboard")
def test_grpo_learns(tmp_path: Path) -> None:
    config = TrainerConfig(
        steps=40,
        rollouts=RolloutConfig(prompts_per_step=6, num_generations=8, max_tokens=3),
        optimization=OptimizationConfig(learning_rate=0.1),
    )
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run").train(toy.Echo)
    rewards = [row["reward"] for row in metrics(tmp_path / "run")]
    assert len(rewards) == 40
    assert np.mean(rewards[:3]) < 0.2
    assert np.mean(rewards[-10:]) > 0.5


@pytest.mark.component("torch")
def test_sft_learns_by_the_same_update(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    pairs = [(first, second) for first in toy.LETTERS for second in toy.LETTERS]
    episodes = [policy.encode(toy.demonstration(*pair)) for pair in pairs]
    config = TrainerConfig(steps=60, optimization=OptimizationConfig(learning_rate=0.1))
    Trainer(policy, SFT(), config, folder=tmp_path / "run").fit(episodes, batch_size=5)
    losses = [row["loss"] for row in metrics(tmp_path / "run")]
    assert losses[0] > 1.5
    assert losses[-1] < 0.1


@pytest.mark.component("torch", "tensorboard")
def test_run_folder_holds_metrics_episodes_and_checkpoints(tmp_path: Path) -> None:
    Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=tmp_path / "run").train(toy.Echo)
    (last,) = (row for row in metrics(tmp_path / "run") if row["step"] == 6)
    assert last.keys() >= {
        "reward",
        "terms/right",
        "episodes/aborted",
        "episodes/truncated",
        "episodes/turns",
        "episodes/tokens",
        "groups/zero_std",
        "loss",
        "grad_norm",
        "learning_rate",
        "clip_low",
        "clip_high",
        "ratio",
        "entropy",
    }
    assert last["ratio"] == pytest.approx(1, abs=1e-5)  # one optimizer step: still on-policy
    saved = sorted(path.name for path in (tmp_path / "run" / "episodes").glob("*.jsonl"))
    assert saved == ["step_000002.jsonl", "step_000004.jsonl", "step_000006.jsonl"]
    episodes = list(read_episodes(tmp_path / "run" / "episodes" / "step_000006.jsonl"))
    assert np.mean([episode.reward for episode in episodes]) == last["reward"]
    for number in {each.group for each in episodes}:  # GRPO: (reward - mean) / deviation
        members = [each for each in episodes if each.group == number]
        rewards = np.array([each.reward for each in members])
        given = [each.turns[0].advantage or 0.0 for each in members]
        centered = rewards - rewards.mean()
        assert np.sign(given).tolist() == np.sign(np.round(centered, 9)).tolist()
        assert sum(given) == pytest.approx(0, abs=1e-6)
    assert _checkpoints(tmp_path / "run") == ["step_000003", "step_000006"]
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def _checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_checkpoints_but_the_newest_are_removed(tmp_path: Path) -> None:
    config = replace(SIX, saving=SavingConfig(checkpoint_every=1, keep_checkpoints=2))
    Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run").train(toy.Echo)
    assert _checkpoints(tmp_path / "run") == ["step_000005", "step_000006"]


def test_steps_play_fresh_scenes(tmp_path: Path) -> None:
    seeds: list[int] = []
    trainer = Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=tmp_path / "run")
    trainer.train(lambda: toy.Echo(on_reset=seeds.append))
    assert len(seeds) == 6 * 3 * 4
    assert len(set(seeds)) == 6 * 3  # members of a group share their seed


# --------------------------------------------------------------------------- exact resume


def _run(folder: Path, algorithm: Algorithm, **arguments: Any) -> Any:
    """Run or resume the six steps; dropout makes the result depend on torch's random state."""
    policy = toy.ToyPolicy(dropout=0.3)
    make_env = arguments.pop("make_env", toy.Echo)
    Trainer(policy, algorithm, SIX, folder=folder, **arguments).train(make_env)
    return policy


class Straight(NamedTuple):
    """Holds the policy and the folder of a run without an interruption."""

    policy: Any
    folder: Path


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Straight:
    """Run the six steps once for all tests that compare with them."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    return Straight(_run(folder, GRPO()), folder)


@pytest.fixture
def finished(straight: Straight, tmp_path: Path) -> Path:
    """Return a copy of the finished run, which the test may change."""
    return shutil.copytree(straight.folder, tmp_path / "run")


def _assert_same(straight: Straight, folder: Path, resumed: Any) -> None:
    assert straight.policy.weights() == resumed.weights()
    assert straight.policy.version == resumed.version
    assert metrics(straight.folder) == metrics(folder)
    for name in ("step_000004.jsonl", "step_000006.jsonl"):
        assert list(read_episodes(straight.folder / "episodes" / name)) == list(
            read_episodes(folder / "episodes" / name)
        )


_KILLED = """
import os, signal, sys
from pathlib import Path

# A shell that starts its jobs in the background has them ignore Ctrl-C; this one must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, SavingConfig, SelectionConfig
from visenv.algos.trainer import Trainer, TrainerConfig

resets = []
def on_reset(seed):
    resets.append(seed)
    if len(resets) == 4 * 12 + 5:  # in the middle of step 5
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))

config = eval(sys.argv[3])
trainer = Trainer(toy.ToyPolicy(dropout=0.3), GRPO(), config, folder=sys.argv[1])
trainer.train(lambda: toy.Echo(on_reset=on_reset))
"""


def _stopped_by(folder: Path, signal_name: str) -> subprocess.CompletedProcess[str]:
    arguments = [str(folder), signal_name, repr(SIX)]
    return run_python("-c", _KILLED, *arguments)


@pytest.mark.component("torch")
@pytest.mark.soak
def test_killed_run_resumes_bitwise(straight: Straight, tmp_path: Path) -> None:
    done = _stopped_by(tmp_path / "killed", "SIGKILL")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [row["step"] for row in metrics(tmp_path / "killed")] == [1, 2, 3, 4]
    assert _checkpoints(tmp_path / "killed") == ["step_000003"]  # step 4 is repeated
    resumed = _run(tmp_path / "killed", GRPO(), resume=True)
    _assert_same(straight, tmp_path / "killed", resumed)


@pytest.mark.component("torch")
@pytest.mark.parametrize("name", few(["SIGTERM", "SIGINT"], 1))
def test_stopped_run_leaves_a_checkpoint_and_explains_how_to_resume(
    straight: Straight, tmp_path: Path, name: str
) -> None:
    done = _stopped_by(tmp_path / "stopped", name)
    said = done.stderr.rstrip().splitlines()[-1]
    assert said.startswith("KeyboardInterrupt: Stopped after step 4 of 6 with the checkpoint ")
    assert said.endswith("step_000004; continue with --resume (Trainer(..., resume=True)).")
    assert _checkpoints(tmp_path / "stopped") == ["step_000003", "step_000004"]
    resumed = _run(tmp_path / "stopped", GRPO(), resume=True)
    _assert_same(straight, tmp_path / "stopped", resumed)


_TRAINS = """
import sys, time
from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, SavingConfig, SelectionConfig
from visenv.algos.trainer import Trainer, TrainerConfig

def begun(seed):
    print("begun", flush=True)
    time.sleep(60)

trainer = Trainer(toy.ToyPolicy(), GRPO(), eval(sys.argv[2]), folder=sys.argv[1])
trainer.train(lambda: toy.Echo(on_reset=begun))
"""


@pytest.mark.component("torch")
def test_second_process_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = subprocess.Popen(
        [sys.executable, "-c", _TRAINS, folder, repr(SIX)], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"begun\n"
        before = sorted(folder.rglob("*"))
        second = Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=folder, resume=True)
        with pytest.raises(RunError, match="Another process trains in"):
            second.train(toy.Echo)
        assert sorted(folder.rglob("*")) == before
    finally:
        first.kill()
        first.communicate()
    # The lock of a dead process is released.
    Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=folder, resume=True).train(toy.Echo)
    assert len(metrics(folder)) == 6


class _Interrupting(GRPO):
    """Sends SIGINT during the third update."""

    calls = 0

    @override
    def loss(self, batch: Batch) -> Loss:
        type(self).calls += 1
        if self.calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return super().loss(batch)


@pytest.mark.component("torch")
def test_ctrl_c_while_learning_waits_for_the_end_of_the_step(
    straight: Straight, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "stopped", _Interrupting())
    assert [row["step"] for row in metrics(tmp_path / "stopped")] == [1, 2, 3]
    assert _checkpoints(tmp_path / "stopped") == ["step_000003"]
    resumed = _run(tmp_path / "stopped", _Interrupting(), resume=True)
    _assert_same(straight, tmp_path / "stopped", resumed)


@pytest.mark.component("torch")
def test_resume_with_a_reference_measures_from_the_start_of_the_run(tmp_path: Path) -> None:
    algorithm = GRPO(kl_coef=0.1)

    def stop_at(resets: int) -> Callable[[], Any]:
        seen: list[int] = []

        def on_reset(seed: int) -> None:
            seen.append(seed)
            if len(seen) == resets:
                raise KeyboardInterrupt

        return lambda: toy.Echo(on_reset=on_reset)

    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "stopped", algorithm, make_env=stop_at(4 * 12 + 1))
    straight = Straight(_run(tmp_path / "straight", algorithm), tmp_path / "straight")
    resumed = _run(tmp_path / "stopped", algorithm, resume=True)
    _assert_same(straight, tmp_path / "stopped", resumed)
    assert metrics(straight.folder)[-1]["kl"] > 0


@pytest.mark.component("torch")
def test_sft_resumes_to_the_bit(tmp_path: Path) -> None:
    def fit(folder: Path, steps: int, resume: bool) -> Any:
        policy = toy.ToyPolicy(dropout=0.3)
        pairs = [(first, second) for first in "abc" for second in "abcd"]
        episodes = [policy.encode(toy.demonstration(*pair)) for pair in pairs]
        config = TrainerConfig(steps, optimization=OptimizationConfig(learning_rate=0.05))
        Trainer(policy, SFT(), config, folder=folder, resume=resume).fit(episodes, batch_size=5)
        return policy

    straight = fit(tmp_path / "straight", 6, resume=False)
    fit(tmp_path / "longer", 3, resume=False)
    resumed = fit(tmp_path / "longer", 6, resume=True)  # constant rate: a run may be extended
    assert straight.weights() == resumed.weights()
    assert metrics(tmp_path / "straight") == metrics(tmp_path / "longer")


# ----------------------------------------------------------------- rejected arguments


def test_folder_that_holds_a_run_is_not_overwritten(straight: Straight) -> None:
    with pytest.raises(RunError, match=r"holds a run already.*--resume.*another name"):
        Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=straight.folder)


def test_resume_needs_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no run .*typo to resume"):
        Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=tmp_path / "typo", resume=True)


def test_checkpoint_of_another_model_is_refused(finished: Path) -> None:
    trainer = Trainer(toy.ToyPolicy(width=12), GRPO(), SIX, folder=finished, resume=True)
    with pytest.raises(RunError, match="another model"):
        trainer.train(toy.Echo)


@pytest.mark.parametrize(
    ("config", "algorithm", "said"),
    [
        (replace(SIX, seed=5), GRPO(), r"config\.seed was 0 and is 5"),
        (replace(SIX, steps=5), GRPO(), r"has taken 6 steps already, so steps must be at least 6"),
        (SIX, GRPO(clip_high=0.3), r"algorithm\.clip_high was 0\.28 and is 0\.3"),
        (SIX, SFT(), r"algorithm\.name was 'GRPO' and is 'SFT'"),
    ],
)
def test_checkpoint_of_another_configuration_is_refused(
    finished: Path, config: TrainerConfig, algorithm: Algorithm, said: str
) -> None:
    trainer = Trainer(toy.ToyPolicy(), algorithm, config, folder=finished, resume=True)
    with pytest.raises(RunError, match=said):
        trainer.train(toy.Echo)


def test_save_interval_may_change(finished: Path) -> None:
    config = replace(SIX, saving=SavingConfig(checkpoint_every=1))
    trainer = Trainer(toy.ToyPolicy(), GRPO(), config, folder=finished, resume=True)
    trainer.train(toy.Echo)
    assert trainer.step == 6


@pytest.mark.parametrize("name", ["state.json", "optimizer/shard_00000_of_00001.pt"])
def test_broken_checkpoint_is_named(finished: Path, name: str) -> None:
    (finished / "checkpoints" / "step_000006" / name).write_bytes(b"half")
    trainer = Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=finished, resume=True)
    with pytest.raises(RunError, match="step_000006 cannot be read"):
        trainer.train(toy.Echo)


def test_checkpoint_that_was_not_completed_is_ignored(straight: Straight, tmp_path: Path) -> None:
    class Dying(toy.ToyPolicy):
        @override
        def save(self, folder: Path) -> None:
            super().save(folder)
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        Trainer(Dying(), GRPO(), SIX, folder=tmp_path / "run").train(toy.Echo)
    assert [name for name in _checkpoints(tmp_path / "run") if name.startswith("step")] == []
    resumed = _run(tmp_path / "run", GRPO(), resume=True)  # starts from the beginning
    assert resumed.weights() == straight.policy.weights()
    assert _checkpoints(tmp_path / "run") == ["step_000003", "step_000006"]


# -------------------------------------------------------------------------- failures


class _Diverging(GRPO):
    """Returns an infinite loss, or a finite loss with an infinite gradient."""

    where = "loss"

    @override
    def loss(self, batch: Batch) -> Loss:
        loss = super().loss(batch)
        if self.where == "loss":
            return Loss(loss.value / 0, loss.metrics)
        return Loss(((batch.logprobs - batch.logprobs.detach()) ** 2).sum().sqrt(), loss.metrics)


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_loss_that_is_not_finite_stops_the_run_and_saves_the_episodes(
    tmp_path: Path, where: str
) -> None:
    algorithm = _Diverging()
    object.__setattr__(algorithm, "where", where)
    policy = toy.ToyPolicy()
    before = policy.weights()
    with pytest.raises(DivergedError, match=rf"In step 1 the {where} is .*diverged"):
        Trainer(policy, algorithm, SIX, folder=tmp_path / "run").train(toy.Echo)
    assert policy.weights() == before
    assert len(list(read_episodes(tmp_path / "run" / "diverged" / "step_000001.jsonl"))) == 12


def test_aborted_episodes_are_counted_and_not_learned_from(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    trainer = Trainer(policy, GRPO(), SIX, folder=tmp_path / "run")
    trainer.train(lambda: toy.Echo(aborts=lambda seed: seed % 2 == 0))
    counts = [row["episodes/aborted"] for row in metrics(tmp_path / "run")]
    assert set(counts) <= {0, 4, 8}  # a whole group shares its seed
    assert sum(counts) > 0
    assert sum(policy.scored) == 6 * 12 - sum(counts)


@pytest.mark.parametrize("on_exhausted", ["drop_member", "drop_group"])
def test_group_with_an_aborted_member_can_be_dropped(tmp_path: Path, on_exhausted: Any) -> None:
    finished = itertools.count(1)
    config = TrainerConfig(
        steps=2,
        rollouts=RolloutConfig(
            prompts_per_step=4,
            num_generations=3,
            max_tokens=3,
            episode_retries=0,
            selection=SelectionConfig(on_exhausted=on_exhausted),
        ),
        saving=SavingConfig(episodes_every=1),
    )
    policy, folder = toy.ToyPolicy(), tmp_path / "run"
    trainer = Trainer(policy, Sloped(), config, folder=folder)
    trainer.train(lambda: toy.Echo(aborts=lambda seed: next(finished) % 5 == 0))
    whole = []  # number of completed episodes of each group
    for path in sorted((folder / "episodes").glob("*.jsonl")):
        episodes = list(read_episodes(path))
        for number in range(4):
            members = [each for each in episodes if each.group == number]
            whole.append(sum(each.status != "aborted" for each in members))
    assert sum(whole) == 24 - 4  # every fifth of 24 episodes is aborted
    expected = [count for count in whole if count == 3 or on_exhausted == "drop_member"]
    assert sum(policy.scored) == sum(expected)
    assert sum(expected) > 0


def test_step_without_usable_episodes_gives_the_reasons(tmp_path: Path) -> None:
    trainer = Trainer(toy.ToyPolicy(), GRPO(), SIX, folder=tmp_path / "run")
    with pytest.raises(RunError, match=r"Step 1 has no episode to learn from.*judge: away"):
        trainer.train(lambda: toy.Echo(aborts=lambda seed: True))


def test_sft_needs_segments(tmp_path: Path) -> None:
    trainer = Trainer(toy.ToyPolicy(), SFT(), SIX, folder=tmp_path / "run")
    with pytest.raises(ConfigurationError, match="encode it first"):
        trainer.fit([toy.demonstration("a", "b")], batch_size=1)
    with pytest.raises(ConfigurationError, match="Expected episodes"):
        trainer.fit([], batch_size=1)


class _Misshapen(GRPO):
    """Returns three advantages for two turns."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [[np.zeros(3) for _ in group] for group in groups]


class _Short(GRPO):
    """Omits one episode."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [advantages[1:] for advantages in super().advantages(groups)]


class _Poisoned(GRPO):
    """Returns NaN."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [[np.array(np.nan) for _ in group] for group in groups]


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (_Misshapen(), r"_Misshapen\.advantages must return .* \[\] or \[2\]"),
        (_Short(), r"_Short\.advantages must return, for each group.*\[4, 4, 4\].*\[3, 3, 3\]"),
        (_Poisoned(), r"_Poisoned\.advantages must return finite numbers"),
    ],
)
def test_algorithm_of_a_user_gets_an_error_with_the_required_values(
    tmp_path: Path, algorithm: Algorithm, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Trainer(toy.ToyPolicy(), algorithm, SIX, folder=tmp_path / "run").train(toy.Echo)


class _TwoMethods(Algorithm):
    """Implements REINFORCE with one reward per turn, as a user would."""

    @override
    def advantages(self, groups: Any) -> Any:
        return [[np.array([turn.reward for turn in e.turns]) for e in group] for group in groups]

    @override
    def loss(self, batch: Batch) -> Loss:
        value = -(batch.logprobs * batch.advantages * batch.mask).sum() / batch.total_tokens
        return Loss(value, {})


def test_algorithm_needs_two_methods(tmp_path: Path) -> None:
    config = TrainerConfig(
        30,
        rollouts=RolloutConfig(prompts_per_step=24, num_generations=1, max_tokens=3),
        optimization=OptimizationConfig(learning_rate=0.1),
    )
    Trainer(toy.ToyPolicy(), _TwoMethods(), config, folder=tmp_path / "run").train(toy.Echo)
    rewards = [row["reward"] for row in metrics(tmp_path / "run")]
    assert np.mean(rewards[-5:]) > np.mean(rewards[:5]) + 0.2


def test_group_type_is_a_plain_sequence() -> None:
    group: Group = [toy.demonstration("a", "b")]
    assert SFT().advantages([group]) == [[np.ones(())]]
