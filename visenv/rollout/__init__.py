"""Playing episodes: one at a time, or many groups at once without lock step.

Environments are called through an `Executor`: here, in threads, in processes, or as Ray actors on
any machine (`visenv.rollout.on_ray.RayExecutor`). Engines may be `Replicas`, those on other
machines too (`visenv.rollout.engines_on_ray.RayEngine`). Ray is imported by these two alone.
"""

from visenv.rollout.collector import Collector
from visenv.rollout.episode import Place, boundary, play
from visenv.rollout.executor import Executor, InlineExecutor
from visenv.rollout.replicas import Replicas
from visenv.rollout.stage import Env
from visenv.rollout.workers import ProcessExecutor, ThreadExecutor

__all__ = [
    "Collector",
    "Env",
    "Executor",
    "InlineExecutor",
    "Place",
    "ProcessExecutor",
    "Replicas",
    "ThreadExecutor",
    "boundary",
    "play",
]
