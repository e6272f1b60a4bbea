"""Tests an engine that samples for the policy: weight transfer, mismatch check, and revival."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig, loop
from visenv.errors import ConfigurationError, RunError, SamplerError
from visenv.policy import Adapter

pytestmark = pytest.mark.component("torch", "tensorboard")


def _config(limit: float | None = 0.25, **rollouts: Any) -> TrainerConfig:
    return TrainerConfig(
        steps=3,
        rollouts=RolloutConfig(prompts_per_step=6, num_generations=4, max_tokens=3, **rollouts),
        optimization=OptimizationConfig(learning_rate=0.1, max_sampler_distance=limit),
    )


def _train(folder: Path, engine: Any, **rollouts: Any) -> Any:
    policy = toy.ToyPolicy()
    Trainer(policy, Sloped(), _config(**rollouts), folder=folder, sampler=engine).train(toy.Echo)
    return policy


def test_sync_gives_the_engine_the_weights_of_the_step_and_is_measured(tmp_path: Path) -> None:
    engine = toy.ToyEngine()
    policy = _train(tmp_path / "engine", engine)
    assert engine.log == ["load 0", "load 1", "load 2", "load 3"]
    assert engine.version == policy.version == 3
    # the same weights sample the same, so the run equals one in which the policy samples
    assert policy.weights() == _train(tmp_path / "plain", None).weights()
    assert metrics(tmp_path / "engine") == metrics(tmp_path / "plain")
    for row in metrics(tmp_path / "engine"):
        assert row["sampler/largest"] < 1e-6
        assert row["sampler/ratio"] == pytest.approx(1, abs=1e-6)
        assert row["sampler/effective"] == pytest.approx(1, abs=1e-6)


def test_engine_with_other_weights_shows_in_the_measures(tmp_path: Path) -> None:
    class Deaf(toy.ToyEngine):
        @override
        def load(self, weights: Any, version: int) -> None:
            before = self._inner.network.weight.clone()
            super().load(weights, version)
            self._inner.network.weight.data = before

    _train(tmp_path / "run", Deaf(), limit=None)
    first = metrics(tmp_path / "run")[0]
    assert first["sampler/distance"] > 0.1
    assert first["sampler/effective"] < 0.95


@pytest.mark.parametrize(
    ("engine_has", "policy_has", "refused"),
    [
        ("0123:Fast:torchvision", "0123:Fast:torchvision", False),
        (None, "0123:Fast:torchvision", False),
        ("0123:Fast:torchvision", None, False),
        ("0123:Fast:torchvision", "0123:FastPil:pil", True),
    ],
)
def test_engine_with_another_image_processor_is_refused_before_it_samples(
    tmp_path: Path, engine_has: str | None, policy_has: str | None, refused: bool
) -> None:
    policy, engine = toy.ToyPolicy(), toy.ToyEngine()
    policy.image_processor, engine.image_processor = policy_has, engine_has
    trainer = Trainer(policy, Sloped(), _config(), folder=tmp_path / "run", sampler=engine)
    if refused:
        with pytest.raises(ConfigurationError, match=r"0123:Fast:torchvision differs from 0123:F"):
            trainer.train(toy.Echo)
        assert not engine.log
    else:
        trainer.train(toy.Echo)
        assert engine.version == 3


@pytest.mark.parametrize("old_logprobs", ["sampler", "trainer"])
def test_sampler_that_disagrees_stops_the_run_before_weights_change(
    tmp_path: Path, old_logprobs: Any
) -> None:
    class Wrong(toy.ToyEngine):
        """Samples with other weights from the second step on, like a restarted server."""

        @override
        def load(self, weights: Any, version: int) -> None:
            super().load(weights, version)
            if version:
                self._inner.network.weight.data *= -3

    policy = toy.ToyPolicy()
    optimization = OptimizationConfig(learning_rate=0.1, old_logprobs=old_logprobs)
    config = replace(_config(), optimization=optimization)
    trainer = Trainer(policy, Sloped(), config, folder=tmp_path / "run", sampler=Wrong())
    with pytest.raises(SamplerError, match=r"In step 2 .* sampler/distance is \d") as caught:
        trainer.train(toy.Echo)
    assert policy.version == trainer.step == 1
    assert "learning_rate" not in str(caught.value)
    assert (tmp_path / "run" / "diverged" / "step_000002.jsonl").exists()


def test_colocated_engine_sleeps_while_weights_change(tmp_path: Path) -> None:
    engine = toy.ToyEngine()
    _train(tmp_path / "run", engine, sleep=True)
    assert engine.log == ["sleep", "wake", "load 0"] + [
        said for step in (1, 2, 3) for said in ("sleep", "wake", f"load {step}")
    ]


def test_engine_is_awake_after_a_run_that_could_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ConfigurationError("The trained weights are torch.bfloat16.")

    monkeypatch.setattr(loop, "make_backend", refuse)
    engine = toy.ToyEngine()
    with pytest.raises(ConfigurationError, match="bfloat16"):
        _train(tmp_path / "run", engine, sleep=True)
    assert engine.log == ["sleep", "wake"]


def test_memory_that_pytorch_keeps_is_given_back_before_an_engine_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = toy.ToyEngine()
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: engine.log.append("clear"))
    _train(tmp_path / "run", engine, sleep=True)
    assert engine.log[:4] == ["sleep", "clear", "wake", "load 0"]
    before = [earlier for earlier, later in pairwise(engine.log) if later == "wake"]
    assert before == ["clear"] * 4
    # With a GPU, accelerate also empties the cache once, when the trainer closes its backend.
    assert engine.log.count("clear") == 4 + torch.cuda.is_available()


def test_transfer_that_fails_is_tried_again(tmp_path: Path) -> None:
    engine = toy.ToyEngine(failures=2)
    policy = _train(tmp_path / "run", engine, engine_restarts=2)
    assert engine.log == ["load 0", "load 0", "load 0", "load 1", "load 2", "load 3"]
    assert policy.weights() == _train(tmp_path / "plain", None).weights()


def test_transfer_that_fails_for_ever_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"failed too often.*The transfer took too long"):
        _train(tmp_path / "run", toy.ToyEngine(failures=9), engine_restarts=2)


def test_engine_that_dies_while_sampling_is_revived_with_its_weights(tmp_path: Path) -> None:
    engine = toy.ToyEngine(dies_at=60)  # in the second step: each step has 48 turns
    policy = _train(tmp_path / "run", engine)
    assert engine.log == ["load 0", "load 1", "load 1", "load 2", "load 3"]
    # the interrupted turns were sampled again
    assert policy.weights() == _train(tmp_path / "plain", None).weights()
    assert [row["episodes/aborted"] for row in metrics(tmp_path / "run")] == [0, 0, 0]


class Adapted(toy.ToyPolicy):
    """Treats the bias of the toy policy as its adapter."""

    @override
    def named_weights(self, gather_params: Any = None, *, merge: bool = True) -> Any:
        for name, weight in self.module.named_parameters():
            yield name, torch.zeros_like(weight) if not merge and "bias" in name else weight

    @override
    def adapter(self, gather_params: Any = None) -> Adapter:
        return Adapter({}, {"bias": self.network.bias.detach().clone()})


class Adaptable(toy.ToyEngine):
    """Accepts adapters."""

    takes_adapters = True

    @override
    def load_adapter(self, adapter: Adapter, version: int, weights: Any = None) -> None:
        if weights is not None:
            self.load(weights, version)
        self.log.append(f"adapter {version}")
        self._inner.network.bias.data = adapter.weights["bias"].clone()
        self.version = self._inner.version = version


def _train_adapter(folder: Path, engine: Any) -> Any:
    policy = Adapted()
    policy.network.weight.requires_grad_(False)
    Trainer(policy, Sloped(), _config(), folder=folder, sampler=engine).train(toy.Echo)
    return policy


def test_engine_that_takes_adapters_is_sent_the_weights_beneath_once(tmp_path: Path) -> None:
    engine = Adaptable()
    policy = _train_adapter(tmp_path / "run", engine)
    assert engine.log == ["load 0", *(f"adapter {version}" for version in range(4))]
    assert all(row["sampler/largest"] < 1e-6 for row in metrics(tmp_path / "run"))
    # an engine without adapters receives merged weights and samples the same
    merged = toy.ToyEngine()
    assert policy.weights() == _train_adapter(tmp_path / "merged", merged).weights()
    assert merged.log == ["load 0", "load 1", "load 2", "load 3"]


def test_engine_that_lost_its_weights_is_sent_them_beneath_the_adapter(tmp_path: Path) -> None:
    engine = Adaptable(dies_at=60)  # in the second step: each step has 48 turns
    policy = _train_adapter(tmp_path / "run", engine)
    revived = ["load 1", "adapter 1"]
    assert engine.log == ["load 0", "adapter 0", "adapter 1", *revived, "adapter 2", "adapter 3"]
    assert policy.weights() == _train_adapter(tmp_path / "plain", None).weights()


def test_first_transfer_that_fails_is_tried_again_with_all_weights(tmp_path: Path) -> None:
    engine = Adaptable(failures=1)
    _train_adapter(tmp_path / "run", engine)
    assert engine.log[:4] == ["load 0", "load 0", "adapter 0", "adapter 1"]


def test_engine_that_keeps_dying_aborts_episodes_until_none_is_left(tmp_path: Path) -> None:
    class Mortal(toy.ToyEngine):
        @override
        async def respond(self, session: Any, request: Any, sampling: Any) -> Any:
            self._left = 0
            return await super().respond(session, request, sampling)

    with pytest.raises(RunError, match=r"Step 1 has no episode.*The engine is dead"):
        _train(tmp_path / "run", Mortal(), engine_restarts=1)
