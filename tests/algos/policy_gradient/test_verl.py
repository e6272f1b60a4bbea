"""Compares with verl 0.9.1, which cannot be installed beside our version of transformers.

The numbers are the results of verl's `core_algos` and `rollout_corr_helper` for the batch below,
from a separate run. The same run compared a hundred random batches to 1e-7, the limit set by the
1e-8 in verl's divisors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from visenv.algorithm import Batch
from visenv.algos.policy_gradient import (
    CISPO,
    DAPO,
    GRPO,
    GSPO,
    RLOO,
    DrGRPO,
    ReinforcePlusPlus,
)


def _matrix(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _batch() -> Batch:
    return Batch(
        logprobs=_matrix([[-1.0, -0.5, -2.0], [-0.7, -1.5, 0.0], [-0.2, -3.0, -1.0]]),
        old_logprobs=_matrix([[-1.1, -0.9, -1.7], [-0.7, -1.2, 0.0], [-1.6, -3.1, -0.9]]),
        sampling_logprobs=_matrix([[-1.0, -1.2, -1.7], [-0.8, -1.1, 0.0], [-1.6, -2.8, -1.0]]),
        reference_logprobs=None,
        entropy=torch.ones(3, 3, dtype=torch.float64),
        advantages=_matrix([[1.0] * 3, [0.5] * 3, [-1.5] * 3]),
        mask=torch.tensor([[True] * 3, [True, True, False], [True] * 3]),
        episode_tokens=torch.tensor([3, 2, 3]),
        total_tokens=8,
        total_episodes=3,
    )


@pytest.mark.parametrize(
    ("algorithm", "verl"),
    [
        # policy loss and `loss_agg_mode`: vanilla, token-mean, clip_ratio_c 3
        (DAPO(clip_dual=3.0), 0.439826781884),
        # vanilla, seq-mean-token-mean; no dual clip in this and the following cases
        (GRPO(), 0.518467737421),
        # vanilla, seq-mean-token-sum
        (RLOO(), 1.727138068445),
        # vanilla, token-mean
        (ReinforcePlusPlus(), 0.647676775667),
        # vanilla, seq-mean-token-sum-norm, loss_scale_factor 8
        (DrGRPO(max_tokens=8), 0.215892258556),
        # gspo, seq-mean-token-mean, clips .05
        (GSPO(clip_low=0.05, clip_high=0.05), 0.303883548936),
        # cispo, token-mean, clips .2 and .28
        (CISPO(min_ratio=0.8, max_ratio=1.28), -0.302419292540),
        # vanilla, token-mean, with rollout_is and its threshold: token 1.2, token .85_1.25, ...
        (DAPO(correction="token", correction_high=1.2), 0.580791547143),
        (
            DAPO(
                correction="token",
                correction_bounds="mask",
                correction_low=0.85,
                correction_high=1.25,
            ),
            0.619279530941,
        ),
        (DAPO(correction="sequence", correction_high=1.2), 0.353382845666),
        (
            DAPO(
                correction="sequence",
                correction_bounds="mask",
                correction_low=0.85,
                correction_high=1.25,
            ),
            -0.586062608300,
        ),
    ],
)
def test_losses(algorithm: Any, verl: float) -> None:
    assert float(algorithm.loss(_batch()).value) == pytest.approx(verl, abs=1e-7)


def _flat(advantages: Any) -> list[float]:
    return [float(value) for group in advantages for each in group for value in each.ravel()]


@pytest.mark.parametrize(
    ("algorithm", "verl"),
    [
        (RLOO(), [0.75, -0.75, 0.0, -0.7, 0.7]),
        (
            ReinforcePlusPlus(),
            [1.7905587927, -1.2396176238, 0.2754705844, -0.6335823405, 1.4875411511],
        ),
        (
            ReinforcePlusPlus(baseline="group"),
            [1.8289360710, -1.1737947923, 0.3275706393, -0.7233851628, 1.3785264415],
        ),
    ],
)
def test_advantages(make_episode: Any, algorithm: Any, verl: list[float]) -> None:
    rewards, tokens = [1.0, 0.0, 0.5, 0.2, 0.9], [1, 2, 4, 3, 1]
    episodes = [make_episode([r], tokens=[n]) for r, n in zip(rewards, tokens, strict=True)]
    given = _flat(algorithm.advantages([episodes[:3], episodes[3:]]))
    assert given == pytest.approx(verl, abs=1e-7)


def test_returns_of_turns(make_episode: Any) -> None:
    # verl received rewards at the last tokens of turns, and a mask without observations
    group = [make_episode([0.5, 1.0], tokens=[2, 3]), make_episode([0.0, 0.25], tokens=[1, 2])]
    given = _flat(ReinforcePlusPlus().advantages([group]))
    verl = [1.2301362720, 0.2928895901, -1.1129804328, -1.1129804328]
    assert given == pytest.approx(verl, abs=1e-7)
    assert np.average(given, weights=[2, 3, 1, 2]) == pytest.approx(0, abs=1e-9)
