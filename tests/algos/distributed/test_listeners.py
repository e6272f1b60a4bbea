"""Tests that SECURITY.md lists no socket of a trainer in one process.

test_distributed.py tests the sockets of several processes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.algos import toy
from tests.listeners import Listener, family, listeners, require_listed
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import RolloutConfig, Trainer, TrainerConfig

pytestmark = [
    pytest.mark.component("accelerate", "torch", "transformers"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]


@pytest.mark.attack("servers: the table of listeners is complete")
def test_trainer_in_one_process_listens_nowhere(tmp_path: Path) -> None:
    before = listeners([os.getpid()])
    config = TrainerConfig(steps=1, rollouts=RolloutConfig(prompts_per_step=1, max_tokens=3))
    trainer = Trainer(toy.ToyPolicy(), GRPO(), config, folder=tmp_path / "run")
    found: set[Listener] = set()

    def make_env() -> toy.Echo:
        found.update(listeners(family(os.getpid())) - before)
        return toy.Echo()

    trainer.train(make_env)
    found |= listeners(family(os.getpid())) - before
    require_listed("trainer in one process", found)
