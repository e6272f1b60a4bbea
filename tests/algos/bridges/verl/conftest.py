"""Provides verl's own agent-loop worker, with servers that sample from a tiny stock model.

Only two parts of a verl job are replaced: the engine is a model in this process, and the queue that
receives the worker's results is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import pytest

PROMPT, RESPONSE = 160, 120


class Sent(NamedTuple):
    """Holds a request as the engine behind verl's server receives it."""

    request_id: str
    collapsed: list[int]
    params: dict[str, Any]
    images: int


class Server:
    """Implements `LLMServerClient.generate` with a model in this process.

    Args:
        folder: The checkpoint.
        processor: verl's processor, which expands the placeholders of a request.
    """

    def __init__(self, folder: Path, processor: Any) -> None:
        import torch
        import transformers

        self.model: Any = transformers.AutoModelForImageTextToText.from_pretrained(folder)
        self.processor = processor
        self.sent: list[Sent] = []
        self.steps = 3
        self.banned = [processor.image_token_id, processor.video_token_id]
        self.generator = torch.Generator().manual_seed(0)

    async def generate(
        self,
        request_id: str,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        image_data: Sequence[Any] | None = None,
        **_: Any,
    ) -> Any:
        from verl.workers.rollout.replica import TokenOutput
        from verl.workers.rollout.utils import qwen2_5_vl_dedup_image_tokens

        params = dict(sampling_params)
        collapsed = qwen2_5_vl_dedup_image_tokens(prompt_ids, self.processor)
        images = list(image_data or [])
        self.sent.append(Sent(request_id, list(collapsed), params, len(images)))
        seen = self._see(images)
        assert self._expand(collapsed, seen) == prompt_ids, "the engine would see another prompt"
        tokens, logprobs = self._sample(prompt_ids, seen, params)
        fields = dict.fromkeys(("global_steps", "min_global_steps"), self.steps)
        return TokenOutput(
            token_ids=tokens,
            log_probs=logprobs if params["logprobs"] else None,
            stop_reason="completed",
            extra_fields=fields | {"max_global_steps": self.steps},
        )

    def _see(self, images: list[Any]) -> dict[str, Any]:
        if not images:
            return {}
        return dict(self.processor.image_processor(images=images, return_tensors="pt"))

    def _expand(self, collapsed: Sequence[int], seen: dict[str, Any]) -> list[int]:
        """Repeat the placeholder of each image as vLLM does."""
        grids = iter(seen["image_grid_thw"].prod(-1).tolist() if seen else [])
        ids: list[int] = []
        for token in collapsed:
            image = token == self.processor.image_token_id
            ids += [token] * (next(grids) // 4 if image else 1)
        return ids

    def _sample(
        self, prompt: list[int], seen: dict[str, Any], params: dict[str, Any]
    ) -> tuple[list[int], list[float]]:
        import torch

        end = self.processor.tokenizer.convert_tokens_to_ids("<|im_end|>")
        tokens: list[int] = []
        logprobs: list[float] = []
        while len(tokens) < params["max_tokens"] and tokens[-1:] != [end]:
            ids = torch.tensor([prompt + tokens])
            types = (ids == self.processor.image_token_id).int()
            with torch.no_grad():
                logits = self.model(input_ids=ids, mm_token_type_ids=types, **seen).logits[0, -1]
            logits[self.banned] = -torch.inf
            known = torch.log_softmax(logits / params["temperature"], -1)
            token = int(torch.multinomial(known.exp(), 1, generator=self.generator))
            tokens.append(token)
            logprobs.append(float(known[token]))
        return tokens, logprobs


class Queue:
    """Records the results that verl's worker writes to its transfer queue."""

    def __init__(self) -> None:
        self.statuses: list[str] = []
        self.keys: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.tags: list[dict[str, Any]] = []

    async def put(self, key: str, partition_id: str, tag: dict[str, Any]) -> None:
        self.statuses.append(tag["status"])

    async def put_batch(
        self, keys: list[str], fields: Any, tags: list[dict[str, Any]], partition_id: str
    ) -> None:
        self.keys += keys
        self.tags += tags
        names = list(fields.keys())
        self.rows += [{name: fields[name][n] for name in names} for n in range(len(keys))]


class Worker(NamedTuple):
    """Holds verl's worker, its servers and its queue."""

    loops: Any
    server: Server
    queue: Queue

    async def play(self, seed: int, members: int = 2, agent: str = "pictures", **row: Any) -> None:
        """Play one row of a data set as verl does."""
        from visenv.algos.bridges.verl import rows

        (made,) = rows([seed], agent=agent)
        prompt = made | {"raw_prompt": made["prompt"], "uid": f"u{seed}", "global_steps": 3} | row
        prompt["__rollout_n__"] = members
        params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}
        about = {"step": 3, "sample_index": 0, "rollout_n": 0, "validate": False}
        await self.loops._run_prompt(prompt, params | {"logprobs": True}, about)


@pytest.fixture
def pictures_id(pictures: Any) -> Iterator[Callable[..., str]]:
    """Yield a function that registers `Pictures`, or another environment, and returns the id."""
    made: list[str] = []

    def register(env: Any = pictures.Pictures, **options: Any) -> str:
        made.append(f"test/Pictures{len(made)}-v0")
        gym.register(made[-1], env, kwargs=options, disable_env_checker=True)
        return made[-1]

    yield register
    for name in made:
        del gym.registry[name]


@pytest.fixture
def worker(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    """Return a function that makes verl's worker, configured as in verl, for an environment."""

    def make(env_id: str, **settings: Any) -> Worker:
        import transfer_queue
        from omegaconf import OmegaConf
        from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
        from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

        target = "visenv.algos.bridges.verl.loop.VisenvAgentLoop"
        entry = {"name": "pictures", "_target_": target, "env_id": env_id, "turn_tokens": 6}
        OmegaConf.save(OmegaConf.create([entry | settings]), tmp_path / "loops.yaml")
        config = _config(tiny, tmp_path / "loops.yaml")
        # This is the class inside the Ray actor, created without an actor.
        loops = object.__new__(AgentLoopWorkerTQ.__ray_metadata__.modified_class)
        AgentLoopWorker.__init__(loops, config, None)
        queue = Queue()
        monkeypatch.setattr(transfer_queue, "async_kv_put", queue.put)
        monkeypatch.setattr(transfer_queue, "async_kv_batch_put", queue.put_batch)
        loops.llm_client = Server(tiny, loops.processor)
        return Worker(loops, loops.llm_client, queue)

    return make


def _config(model: Path, loops: Path) -> Any:
    from hydra import compose, initialize_config_module

    rollout = "actor_rollout_ref.rollout"
    changes = {
        "actor_rollout_ref.model.path": model,
        f"{rollout}.name": "vllm",
        f"{rollout}.prompt_length": PROMPT,
        f"{rollout}.response_length": RESPONSE,
        f"{rollout}.agent.agent_loop_config_path": loops,
    }
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", [f"{name}={value}" for name, value in changes.items()])
