"""Contains habitat-lab's PDDL task with a separate planning problem in each episode."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from habitat.config import read_write
from habitat.tasks.rearrange.multi_task.pddl_domain import PddlProblem
from habitat.tasks.rearrange.multi_task.pddl_task import PddlTask


class ProblemTask(PddlTask):
    """Implements habitat-lab's PDDL task for episodes that write their planning problem.

    habitat-lab reads a problem when it creates the task; a subclass writes it (`write_first`).
    """

    def __init__(self, *args: Any, config: Any, dataset: Any, **kwargs: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="visenv-habitat-")
        self.folder = Path(self._folder.name)
        domain, problem = self.write_first(dataset.episodes[0])
        with read_write(config):
            config.pddl_domain_def = str(domain)
            config.task_spec_base_path = str(problem.parent)
            config.task_spec = problem.stem
        super().__init__(*args, config=config, dataset=dataset, **kwargs)

    def write_first(self, episode: Any) -> tuple[Path, Path]:
        """Write the problem to `folder`; return the files of the domain and of the problem."""
        raise NotImplementedError

    def read_problem(self, domain: Path, problem: Path) -> None:
        """Read the planning problem of an episode."""
        self.pddl_problem = PddlProblem(str(domain), str(problem), self._config)

    def _check_episode_is_active(self, *args: Any, **kwargs: Any) -> bool:
        is_reached = self.pddl_problem.is_expr_true(self.pddl_problem.goal)
        return super()._check_episode_is_active(*args, **kwargs) and not is_reached
