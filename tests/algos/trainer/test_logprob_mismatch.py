"""Tests the mismatch between sampler and trainer log-probabilities, with numbers worked by hand."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from visenv.algos.trainer.diagnostics import LogprobMismatch
from visenv.algos.trainer.distributed import DistributedContext
from visenv.errors import SamplerError

pytestmark = pytest.mark.component("torch")


def test_agreement_by_hand() -> None:
    agreement = LogprobMismatch()
    log = math.log
    trainer = torch.tensor([[log(0.5), log(0.2), log(0.9)], [log(0.3), 0.0, 0.0]])
    sampler = torch.tensor([[log(0.25), log(0.2), log(0.1)], [math.nan, 0.0, 0.0]])
    fresh = torch.tensor([[True, True, False], [True, False, False]])
    # the two tokens that are fresh and have finite log-probabilities have ratios 2 and 1
    agreement.add(trainer[:, :2], sampler[:, :2], fresh[:, :2])
    # one more token in another batch: 0.3 / 0.6 = 1/2
    agreement.add(
        torch.tensor([[log(0.3)]]), torch.tensor([[log(0.6)]]), torch.tensor([[True]])
    )  # fmt: skip
    assert agreement.measures(DistributedContext(timeout=60)) == pytest.approx(
        {
            "sampler/distance": 2 * log(2) / 3,
            "sampler/largest": log(2),
            "sampler/ratio": 3.5 / 3,
            # (2 + 1 + ½)² / (3 · (4 + 1 + ¼)) = 12.25 / 15.75
            "sampler/effective": 12.25 / 15.75,
        },
        abs=1e-6,
    )


def test_agreement_without_tokens_measures_nothing() -> None:
    agreement = LogprobMismatch()
    agreement.add(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool))
    assert agreement.measures(DistributedContext(timeout=60)) == {}


def test_distance_over_fewer_than_64_tokens_stops_no_run() -> None:
    agreement, processes = LogprobMismatch(), DistributedContext(timeout=60)

    def add(count: int) -> None:
        trainer = torch.zeros(1, count)
        agreement.add(trainer, trainer - 5.0, torch.ones(1, count, dtype=torch.bool))

    add(63)
    agreement.require(processes, 0.25)
    add(1)
    with pytest.raises(SamplerError, match="sampler/distance is 5 nats"):
        agreement.require(processes, 0.25)
