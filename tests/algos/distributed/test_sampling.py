"""Tests two training processes, each with its own vLLM engine that samples its share.

The test with one server for both processes is in tests/policies/vllm/test_server.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.algos.distributed.launching import launch, require_two_who_sampled_alike
from tests.tiny_models import tiny_model

pytestmark = [
    pytest.mark.component("accelerate", "deepspeed", "torch", "transformers", "vllm"),
    pytest.mark.timeout(900),
]


@pytest.mark.soak
def test_zero_3_beside_engines_within_its_processes(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "tiny")
    run = tmp_path / "run"
    done = launch("ZeRO-3", Path(__file__).with_name("sampling.py"), model, run)
    require_two_who_sampled_alike(done, run)
    for rank in range(2):  # the engines sample, so the trainer's weights stay sharded
        assert json.loads((run / f"process-{rank}.json").read_text())["gathered"] == 0
