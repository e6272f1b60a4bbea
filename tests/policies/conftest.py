"""Provides tiny models, built once, and conversations with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.tiny_models import tiny_model
from visenv.types import Image, Message, Reply, Sampling, TurnRequest, Video, Visual

if TYPE_CHECKING:
    from visenv.policies.transformers import TokenSession, TransformersPolicy

    Conversation = tuple[TokenSession, list[Reply]]


class Talk:
    """Holds conversations with a policy, without an environment."""

    request = TurnRequest("<think>")
    sampling = Sampling(1.0, 12)

    def picture(self, seed: int, width: int = 64, height: int = 64) -> Image:
        rng = np.random.default_rng(seed)
        return Image.from_pixels(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))

    def clip(
        self, seed: int, frames: int, width: int = 64, height: int = 64, seconds: float = 0.5
    ) -> Video:
        """Return a video whose frames are `seconds` apart."""
        shown = [self.picture(1000 * seed + k, width, height) for k in range(frames)]
        return Video(tuple(shown), tuple([seconds * k for k in range(frames)]))

    def shown(self, text: str, *images: Visual) -> list[Message]:
        return [Message("user", ("look: ", *images, text))]

    async def converse(
        self,
        policy: TransformersPolicy,
        seed: int,
        turns: Sequence[Sequence[Message]],
        request: TurnRequest | None = None,
        sampling: Sampling | None = None,
        before: Callable[[TokenSession], None] | None = None,
    ) -> Conversation:
        """Hold one conversation; call `before` ahead of each turn."""
        session = policy.open(seed)
        replies = []
        for messages in turns:
            session.observe(messages)
            if before is not None:
                before(session)
            reply = await policy.respond(
                session, request or self.request, sampling or self.sampling
            )
            replies.append(reply)
        return session, replies

    def alone(self, policy: TransformersPolicy, *arguments: Any, **options: Any) -> Conversation:
        return asyncio.run(self.converse(policy, *arguments, **options))

    def together(
        self, conversations: Sequence[Coroutine[Any, Any, Conversation]]
    ) -> list[Conversation]:
        async def run() -> list[Conversation]:
            return list(await asyncio.gather(*conversations))

        return asyncio.run(run())


@pytest.fixture(scope="session")
def talk() -> Talk:
    return Talk()


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tiny model of a family; `name` is a fixture of the test module."""
    from tests.policies.transformers import families

    if name == "smolvlm":
        pytest.importorskip("num2words")  # its processor needs this package
    return families.build(name, tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def qwen3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("qwen3"), patch_size=8, view_side=64)


@pytest.fixture(scope="session")
def qwen2_5_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen2_5")
    return tiny_model(folder, architecture="qwen2_5_vl", patch_size=14, view_side=112)


@pytest.fixture(scope="session")
def qwen3(qwen3_folder: Path) -> TransformersPolicy:
    """Return a policy that is shared by tests that do not change its weights."""
    from visenv.policies.transformers import TransformersPolicy

    return TransformersPolicy(qwen3_folder, threads=1)


@pytest.fixture(scope="session")
def qwen2_5(qwen2_5_folder: Path) -> TransformersPolicy:
    """Return a policy that is shared by tests that do not change its weights."""
    from visenv.policies.transformers import TransformersPolicy

    return TransformersPolicy(qwen2_5_folder, threads=1)


@pytest.fixture(params=["qwen3", "qwen2_5"])
def policy(request: pytest.FixtureRequest) -> TransformersPolicy:
    """Return a policy of each architecture in turn."""
    found: TransformersPolicy = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def fresh(qwen3_folder: Path) -> TransformersPolicy:
    """Return a policy whose weights a test may change."""
    from visenv.policies.transformers import TransformersPolicy

    return TransformersPolicy(qwen3_folder, threads=1)
