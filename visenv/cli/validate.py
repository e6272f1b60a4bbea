"""Implements `visenv validate ENV`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from visenv.cli.arguments import DataName, EnvName, Settings, check_at_least
from visenv.errors import VisenvError
from visenv.makers import env_id, env_maker

if TYPE_CHECKING:
    from visenv.testing.validation import CheckResult, ValidationReport


@dataclass(frozen=True)
class ValidateCommand:
    """Check that an environment follows the contract, and measure its speed.

    The checks are those of `visenv.testing`: Gymnasium's own checker, determinism, pickling,
    hostile texts, the maximum reward for the oracle, the minimum for empty and random turns, and
    rescoring. All checks run, even after a check has failed; each is reported when it ends, and the
    exit status is 1 if a check failed.
    """

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    hostile: int = 200
    """Number of hostile texts to generate, in addition to the fixed ones."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Run the checks and print the report.

        Raises:
            VisenvError: If a check failed.
        """
        from visenv.testing.survival import require_hypothesis

        check_at_least(1, hostile=self.hostile)
        require_hypothesis()
        make = env_maker(self.env, self.option, self.data)
        from visenv.testing.contract import CHECKS
        from visenv.testing.validation import validate

        done = 0

        def show(check: CheckResult) -> None:
            nonlocal done
            done += 1
            result = "passed" if check.passed else "FAILED"
            place = f"{done}/{len(CHECKS)} {check.name.replace('_', ' ')}"
            print(f"{place}: {result} in {check.seconds:.1f} s", file=sys.stderr, flush=True)

        report = validate(make, self.hostile, show)
        name = env_id(self.env)
        if self.json:
            print(json.dumps(_as_json(name, report), indent=2))
        else:
            _print(report)
        if report.failed:
            failed = ", ".join(check.name for check in report.failed)
            raise VisenvError(
                f"{len(report.failed)} of {len(report.checks)} checks of {name} failed: {failed}."
            )


def _as_json(name: str, report: ValidationReport) -> dict[str, Any]:
    return {
        "environment": name,
        "passed": not report.failed,
        "checks": [check._asdict() for check in report.checks],
        "top_reward": report.top_reward,
        "mean_reward": report.rewards,
        "hostile_texts": report.hostile_texts,
        "steps_per_second": report.steps_per_second,
    }


def _print(report: ValidationReport) -> None:
    from rich.console import Console

    from visenv.cli.tables import table_of

    console = Console()
    checks = [
        (check.name.replace("_", " "), "passed" if check.passed else f"FAILED: {check.problem}")
        for check in report.checks
    ]
    console.print(table_of("check", "result", checks))
    if report.top_reward is None:
        return
    facts: Sequence[tuple[str, str]] = [
        ("top reward", f"{report.top_reward:.3f}"),
        *((f"mean reward, {name}", f"{mean:.3f}") for name, mean in report.rewards.items()),
        ("hostile texts", str(report.hostile_texts)),
        ("steps per second", f"{report.steps_per_second:.0f}"),
    ]
    console.print(table_of("measured", "", facts))
