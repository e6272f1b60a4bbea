"""Images with something wrong, to be repaired by code: MAT-Coding, made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from visenv.cli.arguments import check_at_least
from visenv.cli.data.base import StepCommand

if TYPE_CHECKING:
    from visenv.envs.arft.coding.world import DistortedRows, DistortedWorld
    from visenv.envs.arft.coding.world.plans import Plan


@dataclass(frozen=True, kw_only=True)
class Distort(StepCommand):
    """Make samples whose images are turned, dark, blurred…, in the layout of MAT-Coding.

    Then ArftCoding-v0 plays them: --data mat_coding:<folder of the file>.
    """

    data: Annotated[str, Positional, arg(metavar="NAME:FOLDER")] = "procedural"
    """Data set of questions about one image, or procedural: documents and scenes."""
    plan: Literal["train", "test"] = "train"
    """How often each problem occurs: the paper's 1,200 samples, or its 200."""
    problems: tuple[str, ...] = ()
    """Instead of a plan: what is to be wrong, each as often, for example rotation90+noise."""
    samples: int | None = None
    """How many; as many as the plan, or 100 of each problem, by default."""
    seed: int = 0
    """Seeds what is drawn."""

    def run(self) -> None:
        """Make them."""
        from visenv.envs.arft.coding.curation.distort import Distort as Work
        from visenv.envs.arft.coding.curation.distort import plan_lines
        from visenv.envs.arft.coding.world import PLANS
        from visenv.envs.arft.coding.world.plans import read_problems

        check_at_least(1, samples=self.samples)
        plan: Plan = PLANS[self.plan]
        if self.problems:
            plan = dict.fromkeys(map(read_problems, self.problems), 100)
        source = self._source(plan)
        rows = None if self.data == "procedural" else len(source)  # type: ignore[arg-type]
        lines = plan_lines(plan, self.seed, self.samples, rows)
        self._work(Work(source, self.out.parent, self.seed, self.data), lines)

    def _source(self, plan: Plan) -> DistortedWorld | DistortedRows:
        from visenv.data.open import open_data
        from visenv.envs.arft.coding.world import DistortedRows
        from visenv.envs.arft.coding.world.questions import procedural

        if self.data == "procedural":
            return procedural(plan=plan)
        return DistortedRows(open_data(self.data), plan, self.seed)
