"""Defines the agent loop, which plays a visenv episode for each rollout of verl."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import gymnasium as gym
from omegaconf import OmegaConf

import visenv  # noqa: F401 - registers the environments
from visenv.errors import ConfigurationError
from visenv.private_names import check_private_names
from visenv.rollout import Collector, EpisodeSpec, ThreadExecutor
from visenv.types import Sampling

from .formats import to_verl
from .policy import SECONDS, RowLengths, ServerPolicy, codec_of
from .private_names import LOOP_NAMES

check_private_names(LOOP_NAMES)  # before the names are imported

from verl.experimental.agent_loop.agent_loop import (  # noqa: E402
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)

_log = logging.getLogger(__name__)


class VisenvAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays one episode with verl's servers.

    Name the class and its environment in the file of ``agent_loop_config_path``, as in
    `agent_loop.yaml` in the folder of this module::

        - name: visenv
          _target_: visenv.algos.bridges.verl.loop.VisenvAgentLoop
          env_id: visenv/ZoomVQA-v0
          env_options: {preset: scenes}

    Each worker of verl has one set of environments, in threads, and one codec, which all loops of
    the worker share. The loop returns a list of outputs, so it needs the V1 trainer
    (``trainer.use_v1=True``, the default of verl).

    Args:
        *args: The arguments that verl passes to every agent loop.
        env_id: The id of the environment.
        env_options: The options of the environment.
        turn_tokens: The maximum number of sampled tokens in a turn.
        timeout: The time limit of a reset or a step, in seconds.
        retries: The number of times that an aborted episode is played again.
        concurrency: The maximum number of episodes that a worker plays concurrently.
        **others: The keyword arguments that verl passes to every agent loop.

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
            raise ConfigurationError(
                "The messages of visenv contain images, and the processor of this model "
                f"({type(self.processor).__name__}) has no image processor: set "
                "actor_rollout_ref.model.path to a vision-language model, such as Qwen2.5-VL."
            )
        self._env_id = env_id
        self._env_options = OmegaConf.to_object(OmegaConf.create(dict(env_options or {})))
        self._turn_tokens = turn_tokens
        self._timeout = timeout
        self._concurrency, self._retries = concurrency, retries

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Play the episode of a row.

        Args:
            sampling_params: The sampling parameters of verl, for all turns.
            **row: A row of the data set that was created from `rows`, and verl's ``session_id``
                (the member of the group).

        Returns:
            An output for each context of the episode; none for an aborted episode.
        """
        seconds: list[float] = []
        SECONDS.set(seconds)  # every rollout is a separate task, so the variable is separate too
        started = time.perf_counter()
        episode = await self._collector(sampling_params).play(_place(row))
        if episode.status == "aborted":
            _log.warning("Seed %d of %s: %s", episode.seed, self._env_id, episode.failure)
        took, sampling = time.perf_counter() - started, sum(seconds)
        metrics = AgentLoopMetrics(generate_sequences=sampling, tool_calls=took - sampling)
        return [AgentLoopOutput(**fields, metrics=metrics) for fields in to_verl(episode)]

    def _collector(self, params: Mapping[str, Any]) -> Collector:
        """Return the collector of this worker for these sampling parameters."""
        known = self._collectors.setdefault(self.server_manager, {})
        named = [self._env_id, self._env_options, params]
        limits = [self._turn_tokens, self._timeout, self._concurrency, self._retries]
        key = json.dumps([*named, *limits], sort_keys=True, default=str)
        if key not in known:
            known[key] = self._new_collector(params)
        return known[key]

    def _new_collector(self, params: Mapping[str, Any]) -> Collector:
        codec = codec_of(self.tokenizer.name_or_path)
        own = codec.family.fingerprint(with_videos=False)
        theirs = codec.fingerprint_of(self.processor.image_processor)
        if theirs != own:
            raise ConfigurationError(
                f"verl's image processor {theirs} differs from that of the checkpoint, {own}, in "
                "its settings, class or backend, so images would not match their tokens: remove "
                "data.mm_processor_kwargs."
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
        raise ConfigurationError("A row names no seed: create verl's data set with rows().")
    index = named.get("row")
    return EpisodeSpec(
        int(named["seed"]),
        member=int(row.get("session_id", 0)),
        index=None if index is None else int(index),
    )
