"""Plays one episode, or many groups of episodes concurrently and asynchronously.

An `Executor` runs the environments: in this process, in threads, in processes, or as Ray actors on
any machine (`visenv.rollout.ray_executor.RayExecutor`). `Replicas` samples with several engines,
which can run on other machines (`visenv.rollout.ray_engine.RayEngine`). Only `ray_executor` and
`ray_engine` import Ray. `EpisodePool` is the vector environment that `gym.make_vec` returns, for
training loops that you write yourself.
"""

from visenv.rollout.adapter import Env, EnvAdapter, MakeEnv
from visenv.rollout.collector import Collector
from visenv.rollout.episode import EpisodeSpec, play
from visenv.rollout.executor import Executor, InlineExecutor
from visenv.rollout.mixture import Mixture
from visenv.rollout.replicas import Replicas
from visenv.rollout.vector_env import EpisodePool
from visenv.rollout.vector_requests import EnvResult, ResetRequest
from visenv.rollout.worker_executors import ProcessExecutor, ThreadExecutor

__all__ = [
    "Collector",
    "Env",
    "EnvAdapter",
    "EnvResult",
    "EpisodePool",
    "EpisodeSpec",
    "Executor",
    "InlineExecutor",
    "MakeEnv",
    "Mixture",
    "ProcessExecutor",
    "Replicas",
    "ResetRequest",
    "ThreadExecutor",
    "play",
]
