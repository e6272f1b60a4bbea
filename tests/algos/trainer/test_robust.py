"""Tests the trainer's robustness: invalid rewards, gradient jumps, and steps without a gradient."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import Sloped
from visenv.algorithm import Batch, Loss
from visenv.algos.policy_gradient import GRPO
from visenv.algos.sft import SFT
from visenv.algos.trainer import (
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
)
from visenv.algos.trainer.distributed import DistributedContext
from visenv.episodes import read_episodes
from visenv.errors import ConfigurationError, DivergedError, EpisodeError, RunError

pytestmark = pytest.mark.component("torch", "tensorboard")


def _config(steps: int = 4, **optimization: Any) -> TrainerConfig:
    return TrainerConfig(
        steps,
        rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3),
        optimization=OptimizationConfig(learning_rate=0.02, **optimization),
        saving=SavingConfig(checkpoint_every=1),
    )


def _metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------------------------- rewards


def _paying(reward: float) -> Callable[[], Any]:
    class Generous(toy.Echo):
        @override
        def step(self, action: str) -> Any:
            observation, _, *rest = super().step(action)
            return observation, reward if self._seed % 3 == 0 else 0.0, *rest

    return Generous


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_reward_that_is_no_number_is_refused_and_its_episode_named(
    tmp_path: Path, reward: float
) -> None:
    policy = toy.ToyPolicy()
    before = policy.weights()
    named = r"the episode of Generous with sample '..', seed \d+ \(group \d, member 0\)"
    with pytest.raises(EpisodeError, match=rf"In step \d {named} has the reward {reward}"):
        Trainer(policy, GRPO(), _config(), folder=tmp_path / "run").train(_paying(reward))
    assert policy.weights() == before
    (saved,) = (tmp_path / "run" / "diverged").glob("*.jsonl")
    rewards = [episode.reward for episode in read_episodes(saved)]
    assert sum(not math.isfinite(each) for each in rewards) in (4, 8, 12)
    # The step is not read from the journal again when the environment has been corrected.
    Trainer(policy, GRPO(), _config(), folder=tmp_path / "run", resume=True).train(_paying(1.0))


def test_equal_rewards_are_a_step_that_changes_nothing_and_is_logged(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    before = policy.weights()
    config = _config(weight_decay=0.5)
    Trainer(policy, GRPO(), config, folder=tmp_path / "run").train(_paying(0.0))
    assert policy.weights() == before  # no weight decay either
    assert policy.version == 0
    for row in _metrics(tmp_path / "run"):
        assert row["skipped"] == row["groups/zero_std"] == 1
        assert row["grad_norm"] == row["loss"] == 0


def test_groups_of_one_teach_a_group_relative_algorithm_nothing(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    before = policy.weights()
    config = TrainerConfig(
        2, rollouts=RolloutConfig(prompts_per_step=4, num_generations=1, max_tokens=3)
    )
    Trainer(policy, GRPO(), config, folder=tmp_path / "run").train(toy.Echo)
    assert policy.weights() == before
    assert [row["skipped"] for row in _metrics(tmp_path / "run")] == [1, 1]


# ------------------------------------------------------------------------------ gradient jumps


class _Leaping(Sloped):
    """Multiplies the loss of the fourteenth step by 100."""

    calls = 0

    @override
    def loss(self, batch: Batch) -> Loss:
        type(self).calls += 1
        loss = super().loss(batch)
        return Loss(loss.value * (100 if self.calls == 14 else 1), loss.metrics)


def test_leap_of_the_gradient_stops_the_run_before_the_weights_change(tmp_path: Path) -> None:
    policy, folder = toy.ToyPolicy(), tmp_path / "run"
    trainer = Trainer(policy, _Leaping(), _config(20, max_grad_norm_ratio=10.0), folder=folder)
    with pytest.raises(DivergedError, match=r"In step 14 the gradient norm is .* its median"):
        trainer.train(toy.Echo)
    assert trainer.step == policy.version == 13
    kept = toy.ToyPolicy(seed=5)
    kept.load_weights(folder / "checkpoints" / "step_000013" / "policy")
    assert kept.weights() == policy.weights()
    episodes = list(read_episodes(folder / "diverged" / "step_000014.jsonl"))
    rows = torch.load(folder / "diverged" / "step_000014.scores-0.pt", weights_only=True)
    assert len(rows) == len(episodes) == 12
    for row in rows:
        assert row["logprobs"].shape == row["advantages"].shape == row["token_ids"].shape
        sampled = row["loss_mask"]
        # the same weights sampled and scored
        torch.testing.assert_close(row["logprobs"][sampled], row["sampling_logprobs"][sampled])
    # earlier norms are saved, so that the resumed run knows their median
    state = json.loads((folder / "checkpoints" / "step_000013" / "state.json").read_text())
    assert len(state["norms"]) == 13


# -------------------------------------------------------------------------- log-probabilities


class _Watching(Sloped):
    """Records every batch."""

    seen: list[Batch] = []  # noqa: RUF012 - emptied by the test

    @override
    def loss(self, batch: Batch) -> Loss:
        self.seen.append(batch)
        return super().loss(batch)


def test_trainer_can_compute_old_log_probabilities_itself(tmp_path: Path) -> None:
    class Rounding(toy.ToyEngine):
        """Reports the last log-probability of each turn 0.1 too low."""

        @override
        async def respond(self, session: Any, request: Any, sampling: Any) -> Any:
            reply = await super().respond(session, request, sampling)
            place, logprob, version = session.sampled[-1]
            session.sampled[-1] = (place, logprob - 0.1, version)
            return reply

    seen = {}
    for who in ("sampler", "trainer"):
        _Watching.seen.clear()
        config = _config(1, old_logprobs=who, num_minibatches=3)
        engine = Rounding()
        trainer = Trainer(
            toy.ToyPolicy(), _Watching(), config, folder=tmp_path / who, sampler=engine
        )
        trainer.train(toy.Echo)
        seen[who] = list(_Watching.seen)
    for batch in seen["sampler"]:
        assert torch.equal(batch.old_logprobs, batch.sampling_logprobs)
    first, *later = seen["trainer"]
    torch.testing.assert_close(first.old_logprobs, first.logprobs.detach())
    for batch in seen["trainer"]:
        difference = (batch.old_logprobs - batch.sampling_logprobs)[batch.mask]
        assert difference.max().item() == pytest.approx(0.1, abs=1e-5)
        assert difference.min().item() == pytest.approx(0, abs=1e-5)
    for batch in later:  # the weights have changed, the old log-probabilities have not
        assert not torch.equal(batch.old_logprobs, batch.logprobs)
    (row,) = _metrics(tmp_path / "trainer")
    assert row["sampler/largest"] == pytest.approx(0.1, abs=1e-5)


def test_episodes_without_log_probabilities_may_then_be_used_again(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    episodes = [policy.encode(toy.demonstration(*pair)) for pair in ("ab", "cd", "aa")]
    config = _config(2, num_epochs=2)
    with pytest.raises(ConfigurationError, match="old_logprobs to 'trainer'"):
        Trainer(policy, SFT(), config, folder=tmp_path / "no").fit(episodes, batch_size=3)
    config = _config(2, num_epochs=2, old_logprobs="trainer")
    Trainer(policy, SFT(), config, folder=tmp_path / "yes").fit(episodes, batch_size=3)
    assert policy.version == 4


# ---------------------------------------------------------------------------------- reference


def test_reference_is_renewed_every_so_many_steps(tmp_path: Path) -> None:
    config = _config(6, ref_sync_steps=2)
    Trainer(toy.ToyPolicy(), Sloped(kl_coef=0.1), config, folder=tmp_path / "run").train(toy.Echo)
    divergence = [row["kl"] for row in _metrics(tmp_path / "run")]
    # The KL is measured before each update: it is 0 right after the reference was replaced.
    assert divergence[0] == divergence[2] == divergence[4] == 0
    assert min(divergence[1], divergence[3], divergence[5]) > 1e-6
    assert [path.name for path in (tmp_path / "run" / "reference").iterdir()] == ["step_000006"]


@pytest.mark.soak
def test_reference_that_was_given_remains_that_of_a_resumed_run(tmp_path: Path) -> None:
    def train(folder: str, steps: int, resume: bool = False, seed: int | None = 5) -> list[float]:
        policy = toy.ToyPolicy()
        reference = None if seed is None else toy.ToyPolicy(seed=seed).copy_frozen()
        config, where = _config(steps), tmp_path / folder
        algorithm = Sloped(kl_coef=0.1)
        Trainer(policy, algorithm, config, folder=where, resume=resume, reference=reference).train(
            toy.Echo
        )
        return [row["kl"] for row in _metrics(where)]

    straight = train("straight", 3)
    assert min(straight) > 1e-3  # the reference is another policy from the first step on
    assert train("own", 1, seed=None) == [0]
    train("resumed", 2)
    # A resumed run uses the reference in its folder, even if another one is passed.
    assert train("resumed", 3, resume=True, seed=9) == straight


def test_reference_needs_an_algorithm_with_a_kl_term(tmp_path: Path) -> None:
    frozen = toy.ToyPolicy(seed=5).copy_frozen()
    with pytest.raises(ConfigurationError, match="no KL term"):
        Trainer(toy.ToyPolicy(), GRPO(), _config(1), folder=tmp_path / "run", reference=frozen)


# ------------------------------------------------------------------------------ checkpoints


def test_processes_that_do_not_find_one_another_raise_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RunError, match=r"2 processes were started, but this one found 0 others"):
        DistributedContext(timeout=60)


def test_narrow_weights_are_not_trained_without_a_wide_copy(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    policy.module.to(torch.bfloat16)
    with pytest.raises(ConfigurationError, match=r"torch\.bfloat16: small updates.*zero2\.yaml"):
        Trainer(policy, GRPO(), _config(1), folder=tmp_path / "run").train(toy.Echo)


def test_policy_without_anything_to_train_is_refused(tmp_path: Path) -> None:
    policy = toy.ToyPolicy().copy_frozen()
    with pytest.raises(ConfigurationError, match="at least one parameter with requires_grad"):
        Trainer(policy, GRPO(), _config(1), folder=tmp_path / "run").train(toy.Echo)
