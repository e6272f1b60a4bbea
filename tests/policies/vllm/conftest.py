"""Provides one real engine for each architecture, and conversations with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.environments import few
from tests.packages import python_path
from visenv.types import Image, Message, Segment

if TYPE_CHECKING:
    from visenv.policies.transformers import TransformersPolicy
    from visenv.policies.vllm import VLLMPolicy

HERE = Path(__file__).parent
SMALL: dict[str, Any] = {"context": 512, "options": {"kv_cache_memory_bytes": 64 * 2**20}}
"""Enough memory for these tests; the default of 1 GiB takes longer to allocate."""

ONE_PROCESS = {"distributed_executor_backend": "vllm.v1.executor.uniproc_executor.UniProcExecutor"}
"""Runs the worker in the process of the engine, as on one GPU; on a CPU, vLLM starts one (11 s)."""

WARNINGS = (
    # vLLM reads every attribute of every module when it replaces Triton's kernels on a CPU.
    "ignore:.*torch.distributed.reduce_op:FutureWarning",
    # The types of its SWIG bindings have no module.
    "ignore:builtin type .* has no __module__ attribute:DeprecationWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            for warning in WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True, scope="session")
def packages_without_a_space() -> Iterator[None]:
    """Let the servers and engines of vLLM load packages by a path without spaces."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in python_path().items():
            patch.setenv(name, value)
        yield


class Exam:
    """Provides conversations of several shapes and the comparison of their log-probabilities."""

    def __init__(self, talk: Any) -> None:
        self.talk = talk

    def turns(self, index: int) -> list[list[Message]]:
        """Return two or three turns with 0 to 3 images of several shapes, which vary by index."""
        talk = self.talk
        shapes = [(64, 64), (96, 64), (64, 128), (112, 112)]
        images = [talk.picture(10 * index + k, *shapes[(index + k) % 4]) for k in range(index % 4)]
        first, rest = images[: index % 3], images[index % 3 :]
        turns = [
            talk.shown(f"question {index} " * (1 + index % 3), *first),
            talk.shown("", *rest),
        ]
        return turns + [talk.shown("and then?")] * (index % 2)

    def play(self, policy: Any, indices: Sequence[int], **options: Any) -> list[Segment]:
        """Hold a conversation for each index, all at once."""
        played = self.talk.together(
            [self.talk.converse(policy, k, self.turns(k), **options) for k in indices]
        )
        return [segment for session, _ in played for segment in session.segments()]

    def images(self, indices: Sequence[int]) -> dict[str, Image]:
        """Return all images of these conversations."""
        messages = [message for k in indices for turn in self.turns(k) for message in turn]
        return {image.sha256: image for message in messages for image in message.images}

    def error(
        self, judge: TransformersPolicy, segments: Sequence[Segment], images: dict[str, Image]
    ) -> float:
        """Return the largest difference between recorded and scored log-probabilities."""
        scores = judge.score(segments, images).logprobs.detach().numpy()
        return max(
            float(np.abs(scores[row, : len(segment)] - segment.logprobs).max())
            for row, segment in enumerate(segments)
        )


@pytest.fixture(scope="session")
def exam(talk: Any) -> Exam:
    return Exam(talk)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Set one thread, as more threads than idle cores slow small models down several times."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    return SMALL


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., VLLMPolicy]]:
    """Yield a function that starts engines, which are closed after the last test of the file.

    Engines of one process share vLLM's process groups, which some files destroy, and an engine
    occupies 1 GiB.
    """
    from visenv.policies.vllm import VLLMPolicy

    started: list[VLLMPolicy] = []

    def start(folder: Path, **options: Any) -> VLLMPolicy:
        given: Any = SMALL | options
        started.append(VLLMPolicy(folder, **given))
        return started[-1]

    yield start
    for policy in started:
        policy.close()


@pytest.fixture(scope="module")
def vllm3(start: Callable[..., VLLMPolicy], qwen3_folder: Path) -> VLLMPolicy:
    """Return an engine that is shared by tests that restore its weights."""
    return start(qwen3_folder)


@pytest.fixture(scope="module")
def vllm2_5(start: Callable[..., VLLMPolicy], qwen2_5_folder: Path) -> VLLMPolicy:
    """Return an engine that is shared by tests that do not change its weights."""
    return start(qwen2_5_folder)


@pytest.fixture(params=few(["3", "2_5"], 1))
def pair(request: pytest.FixtureRequest) -> tuple[VLLMPolicy, TransformersPolicy]:
    """Return the same checkpoint in vLLM and in transformers."""
    which = request.param
    return request.getfixturevalue(f"vllm{which}"), request.getfixturevalue(f"qwen{which}")


@pytest.fixture
def restored(vllm3: VLLMPolicy, qwen3: TransformersPolicy) -> Iterator[None]:
    """Restore the weights of the shared engine after a test that changes them."""
    yield
    vllm3.load(qwen3.network.model.state_dict().items(), 0)


def scale(policy: Any, part: str, factor: float) -> None:
    """Scale all weights whose name contains a text."""
    import torch

    with torch.no_grad():
        for name, weight in policy.network.model.named_parameters():
            if part in name:
                weight.mul_(factor)
    policy.updated()


def change_adapter(policy: Any, seed: int) -> None:
    """Draw new weights for the adapters of a policy."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in policy.module.named_parameters():
            if ".lora_B." in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.1)
    policy.updated()


def send_adapter(vllm: Any, policy: Any, version: int, *, weights: bool = True) -> None:
    """Send the adapters of a policy to an engine, after the other weights if it lacks them."""
    given = policy.named_weights(merge=False) if weights else None
    vllm.load_adapter(policy.adapter(), version, given)
