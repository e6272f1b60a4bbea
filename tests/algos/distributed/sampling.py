"""Trains with a vLLM engine, on every process of a launched test.

Arguments: the folder of a model, the folder of the run, and optionally the address of a server.
Each process writes its results to `process-<rank>.json` in the run's folder, because printed lines
of two processes may interleave.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.algos.distributed.training import CONFIG, make_env
from tests.algos.runs import Sloped
from visenv.algos.trainer import Trainer
from visenv.registration import load

LIMITS: dict[str, Any] = {"context": 512}
SMALL: dict[str, Any] = {"options": {"kv_cache_memory_bytes": 64 * 2**20}}


def main() -> None:
    torch.set_num_threads(1)
    model, folder, *server = sys.argv[1:]
    policy = load("policy", "transformers")(model, threads=1)
    if server:
        engine = load("policy", "vllm-server")(model, *server, **LIMITS)
    else:  # before the process group is initialized, as in programs of users
        engine = load("policy", "vllm")(model, **LIMITS, **SMALL)
    config = replace(CONFIG, steps=2)
    gathered: list[int] = []

    def noting() -> Any:
        """Make an environment during sampling and record how many weights this process holds."""
        gathered.append(sum(weight.numel() for weight in policy.module.parameters()))
        return make_env()

    Trainer(policy, Sloped(), config, folder=folder, sampler=engine).train(noting)
    assert engine.version == policy.version == 4  # two steps of two minibatches
    engine.close()
    meeting = torch.ones(1)
    dist.all_reduce(meeting)  # the trainer's process group still works
    groups = sorted(dist.get_world_size(group) for group in c10d._world.pg_map)
    found = {"processes": int(meeting), "groups": groups, "gathered": max(gathered)}
    Path(folder, f"process-{dist.get_rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
