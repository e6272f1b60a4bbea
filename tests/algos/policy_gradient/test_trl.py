"""Compares advantages, losses, gradients and corrections with TRL's own code."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import defaultdict
from dataclasses import replace
from functools import cache
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.algorithm import Batch
from visenv.algos.policy_gradient import BNPO, CISPO, DAPO, GRPO, GSPO, RLOO, DrGRPO
from visenv.algos.policy_gradient.advantage import group_relative, leave_one_out

pytestmark = pytest.mark.component("trl", "torch")

rewards_of_groups = st.lists(
    st.lists(st.floats(-10, 10, width=32), min_size=3, max_size=3), min_size=1, max_size=5
)
LOSS_TYPES: dict[type, str] = {
    GRPO: "grpo",
    GSPO: "grpo",
    DrGRPO: "dr_grpo",
    DAPO: "dapo",
    BNPO: "bnpo",
    CISPO: "cispo",
}
MODES = {
    ("token", "truncate"): "token_truncate",
    ("token", "mask"): "token_mask",
    ("sequence", "truncate"): "sequence_truncate",
    ("sequence", "mask"): "sequence_mask",
}


@cache
def _statement(trainer: str, contains: str, test: str) -> tuple[CodeType, dict[str, Any]]:
    """Return the one `if` on `test` that mentions `contains` in TRL's sampling method.

    It is a few lines within that method; no smaller unit of the method can be called.
    """
    module: Any = __import__(f"trl.trainer.{trainer.lower()}_trainer", fromlist=["x"])
    method = getattr(module, f"{trainer}Trainer")._generate_and_score_completions
    (branch,) = (
        node
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method))))
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == test
        and contains in ast.unparse(node)
    )
    return compile(ast.Module([branch], []), "trl", "exec"), vars(module)


def _trl_advantages(groups: list[list[float]], scale: str) -> Any:
    stand_in = SimpleNamespace(
        multi_objective_aggregation="sum_then_normalize",
        reward_weights=torch.ones(1, dtype=torch.float64),
        scale_rewards=scale,
    )
    rewards = torch.tensor(groups, dtype=torch.float64).reshape(-1, 1)
    names: dict[str, Any] = {
        "self": stand_in,
        "rewards_per_func": rewards,
        "unscorable_mask": torch.zeros(len(rewards), dtype=torch.bool),
        "num_generations": len(groups[0]),
        "device": "cpu",
    }
    test = "self.multi_objective_aggregation == 'sum_then_normalize'"
    code, module = _statement("GRPO", "scale_rewards", test)
    exec(code, module, names)  # noqa: S102
    return names["advantages"].reshape(len(groups), -1).numpy()


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@settings(deadline=None, max_examples=50)  # the first example imports TRL
@given(groups=rewards_of_groups)
def test_advantages(scale: Any, groups: list[list[float]]) -> None:
    ours = np.stack(group_relative(groups, scale))
    assert np.abs(ours - _trl_advantages(groups, scale)).max() <= 1e-6


@settings(deadline=None, max_examples=50)
@given(groups=rewards_of_groups)
def test_leave_one_out(groups: list[list[float]]) -> None:
    rewards = torch.tensor(groups, dtype=torch.float64)
    names: dict[str, Any] = {
        "self": SimpleNamespace(num_generations=3),
        "rewards": rewards.flatten(),
        "grouped_rewards": rewards,
        "grouped_sum": rewards.sum(1, keepdim=True),
        "scorable_counts": torch.full((len(groups), 1), 3.0),
        "num_generations": 3,
    }
    code, module = _statement("RLOO", "baselines", "num_generations > 1")
    exec(code, module, names)  # noqa: S102
    ours = np.stack([leave_one_out(group) for group in groups])
    assert np.abs(ours.ravel() - names["advantages"].numpy()).max() <= 1e-6


def _trl_importance(batch: Batch, algorithm: Any) -> torch.Tensor:
    stand_in = SimpleNamespace(
        use_vllm=True,
        vllm_importance_sampling_correction=True,
        vllm_importance_sampling_mode=MODES[algorithm.correction, algorithm.correction_bounds],
        vllm_importance_sampling_clip_min=algorithm.correction_low or None,
        vllm_importance_sampling_clip_max=algorithm.correction_high,
    )
    names: dict[str, Any] = {
        "self": stand_in,
        "completion_mask": torch.ones_like(batch.mask, dtype=torch.int64),
        "tool_mask": batch.mask.long(),
        "old_per_token_logps": batch.old_logprobs,
        "sampling_per_token_logps": batch.sampling_logprobs,
    }
    test = "self.use_vllm and self.vllm_importance_sampling_correction"
    code, module = _statement("GRPO", "per_token_logps_diff", test)
    exec(code, module, names)  # noqa: S102
    ratio: torch.Tensor = names["vllm_importance_sampling_ratio"]
    return ratio


def _stand_in(batch: Batch, algorithm: Any) -> Any:
    """Return an object with the trainer attributes that TRL's `_compute_loss` reads.

    Its log-probabilities and entropies are those of the batch.
    """
    accelerator = SimpleNamespace(
        num_processes=1, gather=lambda tensor: tensor, reduce=lambda tensor, reduction: tensor
    )
    args = SimpleNamespace(
        delta=getattr(algorithm, "clip_dual", None),
        use_bias_correction_kl=algorithm.kl_ratio,
        steps_per_generation=1,
    )
    return SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *args, **kwargs: (
            batch.logprobs,
            batch.entropy,
            None,
        ),
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list)},
        accelerator=accelerator,
        args=args,
        aux_loss_enabled=False,
        beta=algorithm.kl_coef,
        current_gradient_accumulation_steps=1,
        epsilon_high=getattr(algorithm, "clip_high", getattr(algorithm, "max_ratio", None)),
        epsilon_low=getattr(algorithm, "clip_low", None),
        importance_sampling_level="sequence" if isinstance(algorithm, GSPO) else "token",
        loss_type=LOSS_TYPES.get(type(algorithm)),
        max_completion_length=getattr(algorithm, "max_tokens", None),
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=algorithm.correction != "none",
        vllm_importance_sampling_correction=True,
    )


def _trl_loss(batch: Batch, algorithm: Any) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss and metrics of TRL's own `_compute_loss` for our log-probabilities."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    stand_in = _stand_in(batch, algorithm)
    prompt = torch.ones((len(batch.mask), 1), dtype=torch.int64)
    inputs = {
        "prompt_ids": prompt,
        "prompt_mask": prompt,
        "completion_ids": torch.ones_like(batch.mask, dtype=torch.int64),
        "completion_mask": torch.ones_like(batch.mask, dtype=torch.int64),
        "tool_mask": batch.mask.long(),
        "advantages": batch.advantages,
        "old_per_token_logps": batch.old_logprobs,
        "ref_per_token_logps": batch.reference_logprobs,
        "num_items_in_batch": torch.tensor(batch.total_tokens),
    }
    if stand_in.use_vllm:
        inputs["importance_sampling_ratio"] = _trl_importance(batch, algorithm)
    value = GRPOTrainer._compute_loss(stand_in, None, inputs)
    metrics = {name: values[0] for name, values in stand_in._metrics["train"].items()}
    return value, metrics


def _agree(batch: Batch, algorithm: Any) -> dict[str, float]:
    batch.logprobs.requires_grad_()
    ours, (theirs, metrics) = algorithm.loss(batch), _trl_loss(batch, algorithm)
    assert abs(float(ours.value.detach()) - float(theirs.detach())) <= 1e-6
    (our_gradient,) = torch.autograd.grad(ours.value, batch.logprobs)
    (their_gradient,) = torch.autograd.grad(theirs, batch.logprobs)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=0, atol=1e-6)
    return metrics | {f"ours/{name}": value for name, value in ours.metrics.items()}


@pytest.mark.parametrize("kind", [GRPO, DrGRPO, DAPO, BNPO])
@pytest.mark.parametrize("clips", [{}, {"clip_low": 0.1, "clip_high": 0.3, "clip_dual": 1.6}])
@pytest.mark.parametrize("kl", [{}, {"kl_coef": 0.04}, {"kl_coef": 0.04, "kl_ratio": True}])
@pytest.mark.parametrize("seed", range(2))
def test_clipped_losses(random_batch: Any, kind: Any, clips: Any, kl: Any, seed: int) -> None:
    metrics = _agree(random_batch(seed), kind(**clips, **kl))
    pairs = {
        "clip_low": "clip_ratio/low_mean",
        "clip_high": "clip_ratio/high_mean",
        "entropy": "entropy",
    }
    if kl:
        pairs["kl"] = "kl"
    for name, theirs in pairs.items():
        assert abs(metrics[f"ours/{name}"] - metrics[theirs]) <= 1e-6
    assert metrics["clip_ratio/low_mean"] > 0  # the test requires a batch with clipped tokens
    assert metrics["clip_ratio/high_mean"] > 0


@pytest.mark.parametrize("kl_coef", [0.0, 0.04])
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_gspo(random_batch: Any, kl_coef: float, seed: int) -> None:
    batch = random_batch(seed)
    batch = replace(batch, advantages=batch.advantages[:, :1].expand(-1, 7).clone())
    on_sequences = replace(batch, advantages=batch.advantages[:, 0])  # one per sequence in TRL
    algorithm = GSPO(clip_low=0.01, clip_high=0.02, kl_coef=kl_coef)
    batch.logprobs.requires_grad_()
    ours, (theirs, metrics) = algorithm.loss(batch), _trl_loss(on_sequences, algorithm)
    assert abs(float(ours.value.detach()) - float(theirs.detach())) <= 1e-6
    (our_gradient,) = torch.autograd.grad(ours.value, batch.logprobs)
    (their_gradient,) = torch.autograd.grad(theirs, batch.logprobs)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=0, atol=1e-6)
    assert metrics["clip_ratio/region_mean"] > 0


@pytest.mark.parametrize("kl_coef", [0.0, 0.04])
@pytest.mark.parametrize("seed", range(3))
def test_cispo(random_batch: Any, kl_coef: float, seed: int) -> None:
    metrics = _agree(random_batch(seed), CISPO(max_ratio=1.2, kl_coef=kl_coef))
    assert metrics["cispo_clip_ratio"] > 0


@pytest.mark.parametrize("kind", [GRPO, DrGRPO, DAPO, BNPO, CISPO])
@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("bounds", [(0.0, 1.1), (0.8, 1.3)])
def test_corrections(
    random_batch: Any, kind: Any, mode: tuple[Any, Any], bounds: tuple[float, float]
) -> None:
    level, kept = mode
    low, high = bounds
    algorithm = kind(
        correction=level,
        correction_bounds=kept,
        correction_low=low,
        correction_high=high,
        kl_coef=0.04,
    )
    metrics = _agree(random_batch(4), algorithm)
    assert 0 < metrics["ours/importance_outside"] < 1


@pytest.mark.parametrize("seed", range(3))
def test_rloo_on_policy(random_batch: Any, seed: int) -> None:
    from trl.trainer.rloo_trainer import RLOOTrainer

    batch = random_batch(seed)
    batch = replace(
        batch,
        old_logprobs=batch.logprobs.clone(),
        advantages=batch.advantages[:, :1].expand(-1, 7),
    )
    batch.logprobs.requires_grad_()
    ones = torch.ones((len(batch.mask), 1), dtype=torch.int64)
    inputs = {
        "prompt_ids": ones,
        "prompt_mask": ones,
        "completion_ids": torch.ones_like(batch.mask, dtype=torch.int64),
        "completion_mask": batch.mask.long(),
        "advantages": batch.advantages[:, 0],
        "old_logps": (batch.old_logprobs * batch.mask).sum(-1),
    }
    algorithm = RLOO()
    theirs = RLOOTrainer._compute_loss(_stand_in(batch, algorithm), None, inputs)
    (their_gradient,) = torch.autograd.grad(theirs, batch.logprobs)
    (our_gradient,) = torch.autograd.grad(algorithm.loss(batch).value, batch.logprobs)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=0, atol=1e-6)
