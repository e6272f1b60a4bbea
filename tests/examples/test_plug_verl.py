"""Tests the example for verl: verl itself reads the files and the settings that it writes."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.programs import load_program, run_python
from tests.tiny_models import tiny_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_verl.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_program("examples/plug_verl.py")


def _run(folder: Path, model: str) -> list[str]:
    options = ["--model", model, "--folder", str(folder), "--preset", "tiny", "--steps", "2"]
    command = [str(EXAMPLE), *options, "--prompts-per-step", "3"]
    done = run_python(*command, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


@pytest.mark.component("pyarrow")
def test_plug_verl_writes_two_files_and_explains_how_to_start_verl(tmp_path: Path) -> None:
    import pyarrow.parquet

    said = _run(tmp_path / "files", "some/model")
    assert said[1:3] == ["-m", "verl.trainer.main_ppo"]
    assert "actor_rollout_ref.model.path=some/model" in said
    table = pyarrow.parquet.read_table(tmp_path / "files" / "train.parquet").to_pylist()
    assert [row["extra_info"]["seed"] for row in table] == [*range(6)]  # 2 steps of 3 groups
    (loop,) = json.loads((tmp_path / "files" / "loops.yaml").read_text())
    assert loop["env_options"] == {"preset": "tiny"}


class Scripted:
    """Represents a server that always answers at once."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokens = tokenizer.encode(" now clear </think><answer>red</answer><|im_end|>")

    async def generate(self, *_: Any, **__: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        return TokenOutput(token_ids=self.tokens, log_probs=[-0.5] * len(self.tokens))


@pytest.mark.component("verl", "torch", "transformers")
@pytest.mark.filterwarnings("ignore")
def test_verl_reads_the_files_and_plays_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transfer_queue
    from hydra import compose, initialize_config_module
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
    from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
    from verl.utils.config import validate_config
    from verl.utils.dataset.rl_dataset import RLHFDataset

    model = tiny_model(tmp_path / "model")
    overrides = _run(tmp_path / "files", str(model))[3:]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides)
    validate_config(config, use_reference_policy=False, use_critic=False)
    loops = object.__new__(AgentLoopWorkerTQ.__ray_metadata__.modified_class)
    AgentLoopWorker.__init__(loops, config, None)
    rows = RLHFDataset(config.data.train_files, loops.tokenizer, config.data, loops.processor)
    assert len(rows) == 6

    put: dict[str, Any] = {}

    async def nothing(**_: Any) -> None:
        pass

    async def batch(keys: list[str], fields: Any, **_: Any) -> None:
        put["keys"], put["scores"] = keys, fields["rm_scores"]

    monkeypatch.setattr(transfer_queue, "async_kv_put", nothing)
    monkeypatch.setattr(transfer_queue, "async_kv_batch_put", batch)
    loops.llm_client = Scripted(loops.tokenizer)
    prompt = dict(rows[4]) | {"uid": "u", "global_steps": 1, "__rollout_n__": 1}
    about = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": False}
    params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "logprobs": True}
    asyncio.run(loops._run_prompt(prompt, params, about))
    assert put["keys"] == ["u_0_0"]
    # An answer in the correct form earns 1. Without a zoom, there is no reward for the tool.
    assert float(put["scores"][0][-1]) >= 1
