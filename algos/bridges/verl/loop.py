"""The agent loop: verl asks for a rollout, visenv plays an episode."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import gymnasium as gym
import transformers
from omegaconf import OmegaConf

import visenv  # noqa: F401 - registers the environments
from visenv.errors import ConfigurationError
from visenv.private_names import check_private_names
from visenv.registration import load
from visenv.rollout import Collector, EpisodeSpec, ThreadExecutor
from visenv.types import Sampling

from .export import to_verl
from .policy import SECONDS, RowLengths, ServerPolicy
from .private_names import LOOP_NAMES

check_private_names(LOOP_NAMES)  # before they are imported

from verl.experimental.agent_loop.agent_loop import (  # noqa: E402
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)

_log = logging.getLogger(__name__)


class VisenvAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays one episode through verl's servers.

    Name it, with its environment, in the file of ``agent_loop_config_path``; `agent_loop.yaml`
    beside this module is one::

        - name: visenv
          _target_: visenv.algos.bridges.verl.loop.VisenvAgentLoop
          env_id: visenv/ZoomVQA-v0
          env_options: {preset: scenes}

    Each worker of verl keeps the environments, in threads of their own, and one codec; the many
    loops that verl makes share them. It gives a list of outputs, so it needs the V1 trainer
    (``trainer.use_v1=True``, verl's default).

    Args:
        *args: As verl hands them to every agent loop.
        env_id: What is played.
        env_options: Of the environment.
        turn_tokens: Most tokens in a turn.
        timeout: Seconds for a reset or a step.
        retries: How often an aborted episode is played again.
        concurrency: Most episodes in flight in a worker.
        **others: As verl hands them to every agent loop.

    Raises:
        ConfigurationError: If the model has no image processor.
    """

    _collectors: ClassVar[WeakKeyDictionary[Any, dict[str, Collector]]] = WeakKeyDictionary()

    def __init__(
        self,
        *args: Any,
        env_id: str,
        env_options: Mapping[str, Any] | None = None,
        turn_tokens: int = 512,
        timeout: float = 120.0,
        retries: int = 1,
        concurrency: int = 128,
        **others: Any,
    ) -> None:
        super().__init__(*args, **others)
        if getattr(self.processor, "image_processor", None) is None:
            raise ConfigurationError("visenv's environments show images; this model takes none.")
        self._env_id = env_id
        self._env_options = OmegaConf.to_object(OmegaConf.create(dict(env_options or {})))
        self._turn_tokens = turn_tokens
        self._timeout = timeout
        self._concurrency, self._retries = concurrency, retries

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Play the episode that a row names.

        Args:
            sampling_params: verl's, for all turns.
            **row: Of the data set made from `rows`, and verl's ``session_id`` (the member).

        Returns:
            An output for each context the policy spoke in; none for an aborted episode.
        """
        seconds: list[float] = []
        SECONDS.set(seconds)  # every rollout is a task of its own, so this is its own too
        started = time.perf_counter()
        episode = await self._collector(sampling_params).play(_place(row))
        if episode.status == "aborted":
            _log.warning("Seed %d of %s: %s", episode.seed, self._env_id, episode.failure)
        took, sampling = time.perf_counter() - started, sum(seconds)
        metrics = AgentLoopMetrics(generate_sequences=sampling, tool_calls=took - sampling)
        return [AgentLoopOutput(**fields, metrics=metrics) for fields in to_verl(episode)]

    def _collector(self, params: Mapping[str, Any]) -> Collector:
        """Return the environments and the policy of this worker for these settings."""
        known = self._collectors.setdefault(self.server_manager, {})
        named = [self._env_id, self._env_options, params]
        limits = [self._turn_tokens, self._timeout, self._concurrency, self._retries]
        key = json.dumps([*named, *limits], sort_keys=True, default=str)
        if key not in known:
            known[key] = self._new_collector(params)
        return known[key]

    def _new_collector(self, params: Mapping[str, Any]) -> Collector:
        codec = _codec(self.tokenizer.name_or_path)
        theirs = type(codec.encoder)(self.processor.image_processor)
        if theirs.fingerprint != codec.encoder.fingerprint:
            raise ConfigurationError(
                "verl's image processor is set otherwise than the checkpoint's own, so that images "
                "would not fit their tokens: leave data.mm_processor_kwargs out."
            )
        room = RowLengths(self.rollout_config.prompt_length, self.rollout_config.response_length)
        return Collector(
            partial(gym.make, self._env_id, **self._env_options),
            ServerPolicy(self.server_manager, codec, params, room),
            Sampling(params.get("temperature", 1.0), self._turn_tokens),
            self._concurrency,
            executor=ThreadExecutor(self._timeout),
            retries=self._retries,
        )


def _place(row: Mapping[str, Any]) -> EpisodeSpec:
    named = row.get("extra_info") or {}
    if "seed" not in named:
        raise ConfigurationError("A row names no seed: make verl's data set from rows().")
    index = named.get("row")
    return EpisodeSpec(
        int(named["seed"]),
        member=int(row.get("session_id", 0)),
        index=None if index is None else int(index),
    )


@lru_cache(maxsize=1)
def _codec(model: str) -> Any:
    rows = transformers.AutoConfig.from_pretrained(model).get_text_config().vocab_size
    return load("policy", "visenv.policies.tokens:Codec")(model, rows, video="frames")
