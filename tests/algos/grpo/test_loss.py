"""The clipped loss and its normalisations by hand, and by TRL's `_compute_loss`."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from visenv.algorithm import Batch
from visenv.algos.grpo import GRPO
from visenv.algos.grpo.loss import aggregate, clipped_loss, clipped_share
from visenv.errors import ConfigurationError


def test_the_clip_by_hand() -> None:
    # low .2, high .28: the ratio counts within [.8, 1.28]
    ratio = torch.tensor([1.0, 1.5, 0.5, 1.5, 0.5, 1.25])
    advantages = torch.tensor([2.0, 2.0, 2.0, -2.0, -2.0, 2.0])
    # unclipped and clipped: 2 2, 3 2.56, 1 1.6, -3 -2.56, -1 -1.6, 2.5 2.5; minus the smaller
    expected = [-2.0, -2.56, -1.0, 3.0, 1.6, -2.5]
    assert clipped_loss(ratio, advantages, 0.2, 0.28).tolist() == pytest.approx(expected)
    low, high = clipped_share(ratio, advantages, 0.2, 0.28)
    assert low.tolist() == [False, False, False, False, True, False]
    assert high.tolist() == [False, True, False, False, False, False]


def test_a_clipped_token_has_no_gradient() -> None:
    ratio = torch.tensor([1.5, 0.5, 1.2], requires_grad=True)
    clipped_loss(ratio, torch.tensor([1.0, -1.0, 1.0]), 0.2, 0.28).sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.tolist() == [0.0, 0.0, -1.0]


def test_normalisations_by_hand() -> None:
    values = torch.tensor([[3.0, 0.0], [1.0, 2.0]])
    mask = torch.tensor([[True, False], [True, True]])
    # by token (3 + 1 + 2) / 3 = 2, by sequence (3/1 + 3/2) / 2 = 2.25
    assert float(aggregate(values, mask, 3, 2, "token")) == pytest.approx(2.0)
    assert float(aggregate(values, mask, 3, 2, "sequence")) == pytest.approx(2.25)


def test_a_step_by_hand() -> None:
    log2 = 0.6931472
    batch = Batch(
        logprobs=torch.tensor([[-1.0, -1.0], [-1.0, 9.0]]),
        old_logprobs=torch.tensor([[-1.0, -1.0 - log2], [-1.0 + log2, 9.0]]),  # ratio 1, 2, 1/2
        reference_logprobs=torch.tensor([[-1.0, -1.0 + log2], [-1.0, 9.0]]),
        entropy=torch.tensor([[0.5, 1.0], [1.5, 9.0]]),
        advantages=torch.tensor([[1.0, 1.0], [-1.0, 9.0]]),
        mask=torch.tensor([[True, True], [True, False]]),
        total_tokens=3,
        total_segments=2,
    )
    loss = GRPO(kl_weight=0.1).loss(batch)
    # policy: -1, -1.28 (clipped above), -min(-.5, -.8) = .8 (clipped below): sum -1.48
    # k3: 0, 2 - log 2 - 1 = .3068528, 0; weighted .03068528. (-1.48 + .03068528) / 3
    assert float(loss.value) == pytest.approx(-0.4831049, abs=1e-6)
    assert loss.metrics == pytest.approx(
        {
            "clip_low": 1 / 3,
            "clip_high": 1 / 3,
            "ratio": 3.5 / 3,
            "entropy": 1.0,
            "kl": 0.3068528 / 3,
        },
        abs=1e-6,
    )


def _random_batch(seed: int, dtype: torch.dtype = torch.float64) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    shape = (5, 7)

    def normal(scale: float) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype) * scale

    mask = torch.rand(shape, generator=generator) < 0.6
    mask[:, 0] = True
    logprobs = -normal(1.0).abs()
    return Batch(
        logprobs=logprobs,
        old_logprobs=logprobs + normal(0.4),
        reference_logprobs=logprobs + normal(0.4),
        entropy=normal(1.0).abs(),
        advantages=normal(1.0),
        mask=mask,
        total_tokens=int(mask.sum()),
        total_segments=len(mask),
    )


def _rows(batch: Batch, rows: slice) -> Batch:
    names = ("logprobs", "old_logprobs", "reference_logprobs", "entropy", "advantages", "mask")
    parts = {name: getattr(batch, name)[rows] for name in names}
    return Batch(**parts, total_tokens=batch.total_tokens, total_segments=batch.total_segments)


@pytest.mark.parametrize("normalisation", ["token", "sequence"])
@pytest.mark.parametrize("seed", range(5))
def test_losses_of_micro_batches_add_up_to_the_loss_of_the_step(
    normalisation: Any, seed: int
) -> None:
    algorithm, batch = GRPO(normalisation=normalisation, kl_weight=0.1), _random_batch(seed)
    whole = algorithm.loss(batch)
    parts = [algorithm.loss(_rows(batch, rows)) for rows in (slice(0, 2), slice(2, 3), slice(3, 5))]
    assert float(sum(part.value for part in parts)) == pytest.approx(float(whole.value), abs=1e-12)
    for name, value in whole.metrics.items():
        assert sum(part.metrics[name] for part in parts) == pytest.approx(value, abs=1e-12)


def test_what_is_off_the_mask_does_not_matter() -> None:
    batch, rubbish = _random_batch(0), _random_batch(0)
    for name in ("logprobs", "old_logprobs", "reference_logprobs", "entropy", "advantages"):
        getattr(rubbish, name)[~rubbish.mask] = torch.nan
    rubbish.logprobs.requires_grad_()
    loss = GRPO(kl_weight=0.1).loss(rubbish)
    assert float(loss.value.detach()) == float(GRPO(kl_weight=0.1).loss(batch).value)
    loss.value.backward()
    assert rubbish.logprobs.grad is not None
    assert (rubbish.logprobs.grad[~rubbish.mask] == 0).all()
    assert rubbish.logprobs.grad.isfinite().all()


def _trl_loss(batch: Batch, algorithm: GRPO, loss_type: str) -> tuple[float, dict[str, float]]:
    """TRL's own `_compute_loss`, handed our log-probabilities by a stand-in for its trainer."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    metrics: dict[str, dict[str, list[float]]] = {"train": defaultdict(list)}
    stand_in: Any = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *args, **kwargs: (
            batch.logprobs,
            batch.entropy,
            None,
        ),
        _entropy_bonus_enabled=False,
        _metrics=metrics,
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda tensor: tensor, reduce=lambda tensor, reduction: tensor
        ),
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1),
        aux_loss_enabled=False,
        beta=algorithm.kl_weight,
        current_gradient_accumulation_steps=1,
        epsilon_high=algorithm.clip_high,
        epsilon_low=algorithm.clip_low,
        importance_sampling_level="token",
        loss_type=loss_type,
        model=SimpleNamespace(training=True),
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=False,
    )
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
    value = GRPOTrainer._compute_loss(stand_in, None, inputs)
    return float(value), {name: values[0] for name, values in metrics["train"].items()}


@pytest.mark.component("trl", "torch")
@pytest.mark.parametrize(("normalisation", "loss_type"), [("token", "dapo"), ("sequence", "grpo")])
@pytest.mark.parametrize("kl_weight", [0.0, 0.04])
@pytest.mark.parametrize("seed", range(3))
def test_trl_agrees(normalisation: Any, loss_type: str, kl_weight: float, seed: int) -> None:
    algorithm = GRPO(normalisation=normalisation, kl_weight=kl_weight)
    batch = _random_batch(seed)
    ours = algorithm.loss(batch)
    theirs, metrics = _trl_loss(batch, algorithm, loss_type)
    assert abs(float(ours.value) - theirs) <= 1e-6
    names = {
        "clip_low": "clip_ratio/low_mean",
        "clip_high": "clip_ratio/high_mean",
        "entropy": "entropy",
        "kl": "kl",
    }
    for name in ours.metrics.keys() & names.keys():
        assert abs(ours.metrics[name] - metrics[names[name]]) <= 1e-6
    assert metrics["clip_ratio/region_mean"] > 0  # the batch does clip, or this proves little


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clip_low": 1.5}, "clip_low must lie between 0 and 1"),
        ({"clip_high": -0.1}, "clip_high must lie between 0"),
        ({"kl_weight": float("nan")}, "kl_weight must lie between 0"),
        ({"scale": "batch"}, "scale is one of .*'group', 'none'"),
        ({"normalisation": "mean"}, "normalisation is one of .*'token', 'sequence'"),
        ({"kl_estimator": "k4"}, "kl_estimator is one of .*'k1', 'k2', 'k3'"),
    ],
)
def test_wrong_settings_say_what_is_allowed(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        GRPO(**settings)


def test_a_reference_is_asked_for_only_with_a_weight() -> None:
    assert not GRPO().needs_reference
    assert GRPO(kl_weight=0.01).needs_reference
