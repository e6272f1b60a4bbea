"""Playing episodes: one at a time, or many groups at once without lock step.

Environments are called through an `Executor`: in this process, in threads, in processes, or as Ray
actors on any machine (`visenv.rollout.ray_executor.RayExecutor`). Engines may be `Replicas`, on
other machines too (`visenv.rollout.ray_engine.RayEngine`). Only these two modules import Ray.
`EpisodePool` is the vector environment behind `gym.make_vec`, for users' own loops.
"""

from visenv.rollout.adapter import Env, EnvAdapter, MakeEnv
from visenv.rollout.collector import Collector
from visenv.rollout.episode import EpisodeSpec, play
from visenv.rollout.executor import Executor, InlineExecutor
from visenv.rollout.mixture import Mixture
from visenv.rollout.replicas import Replicas
from visenv.rollout.vector_env import EpisodePool
from visenv.rollout.vector_result import Reset, Result
from visenv.rollout.worker_executors import ProcessExecutor, ThreadExecutor

__all__ = [
    "Collector",
    "Env",
    "EnvAdapter",
    "EpisodePool",
    "EpisodeSpec",
    "Executor",
    "InlineExecutor",
    "MakeEnv",
    "Mixture",
    "ProcessExecutor",
    "Replicas",
    "Reset",
    "Result",
    "ThreadExecutor",
    "play",
]
