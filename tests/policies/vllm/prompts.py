"""Lets vLLM's processor read the prompts of conversations, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from visenv.policies.vllm import launch, sampler
from visenv.policies.vllm.request import EngineRequest
from visenv.policies.vllm.settings import EngineSettings

if TYPE_CHECKING:
    from visenv.policies.tokens.session import TokenSession


class Prompt(NamedTuple):
    """Holds the tokens of a conversation.

    Attributes:
        found: The tokens that vLLM reads.
        expected: The tokens of visenv.
    """

    found: list[int]
    expected: list[int]


def read_by_vllm(folder: Path, sessions: Sequence[TokenSession]) -> list[Prompt]:
    """Return the whole stream of each conversation, as vLLM and as visenv read it.

    Args:
        folder: The checkpoint.
        sessions: Conversations with a policy of this checkpoint.
    """
    launch.prepare(on_cpu=True, inside=True)
    from vllm import EngineArgs
    from vllm.renderers import renderer_from_config

    from visenv.policies.vllm.engine import Engine

    settings = EngineSettings(folder, context=512)
    arguments = settings.arguments(settings.codec(), "direct")
    config = EngineArgs(**arguments).create_engine_config()
    engine: Any = Engine.__new__(Engine)  # without its weights
    engine._engine = SimpleNamespace(renderer=renderer_from_config(config))
    prompts = []
    for session in sessions:
        stream = session.stream
        request = EngineRequest(
            sampler._collapsed(stream), tuple(stream.images), 1.0, 0, 1,
            videos=tuple(stream.videos),
        )  # fmt: skip
        prompts.append(Prompt(engine.render(request)["prompt_token_ids"], stream.token_ids))
    return prompts
