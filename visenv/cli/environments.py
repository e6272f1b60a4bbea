"""Implements the commands about environments: `visenv list`, `visenv card`, `visenv validate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from visenv.cli.arguments import DataName, EnvName, Settings, check_at_least
from visenv.errors import ConfigurationError, VisenvError
from visenv.makers import env_id, env_maker
from visenv.plugins import GROUPS, SECTIONS, broken_manifests, conflicts, installed
from visenv.registration import ENVIRONMENTS, TABLES
from visenv.terminal import printable_lines

if TYPE_CHECKING:
    from visenv.testing.validation import CheckResult, ValidationReport

_TITLES = {
    "policy": "policies",
    "algorithm": "algorithms",
    "data set": "data",
    "suite": "suites",
}


@dataclass(frozen=True)
class ListCommand:
    """List the environments, policies, algorithms, data sets and suites.

    Names that an installed package adds are listed with the name of the package. Their objects are
    not imported.
    """

    def run(self) -> None:
        """Print the names.

        Raises:
            ConfigurationError: If packages add names that are already in use, or a manifest cannot
                be read; all usable names are printed first.
        """
        rows = {name: entry.summary for name, entry in ENVIRONMENTS.items()}
        rows |= _added("environment")
        width = max(map(len, rows))
        print("environments")
        for name, summary in rows.items():
            print(f"  {name:{width}}  {summary}")
        for kind, title in _TITLES.items():
            added = [f"{name} ({package})" for name, package in _added(kind).items()]
            print(f"{title}\n  {', '.join([*TABLES[kind], *added])}")
        kinds = dict.fromkeys([*GROUPS, *SECTIONS])
        problems = [text for kind in kinds for text in conflicts(kind, _taken(kind))]
        problems += broken_manifests()
        if problems:
            raise ConfigurationError(" ".join(problems))


def _taken(kind: str) -> Mapping[str, object]:
    """Return the names of a kind that no package can add, with their objects."""
    if kind == "environment":  # Gymnasium's environments too
        return {name: spec.entry_point for name, spec in gym.registry.items()}
    return TABLES[kind]


def _added(kind: str) -> dict[str, str]:
    """Return the names that packages add, with the names of the packages."""
    names: dict[str, str] = {}
    taken = _taken(kind)
    for plugin in installed(kind):
        if taken.get(plugin.name, plugin.path) == plugin.path:
            package = f"package {plugin.package}"
            others = names.get(plugin.name)
            names[plugin.name] = f"{others} and {package}" if others else package
    return names


@dataclass(frozen=True)
class CardCommand:
    """Show the card of an environment: spaces, presets, rewards, limits, arguments and scores.

    The oracle, a random player, a blind player and the teachers of the task play held-out episodes
    for the table of scores, and one episode of the oracle is shown.
    """

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    episodes: int = 4
    """Number of episodes of each player for the table of scores; 0 omits the table."""
    data: DataName = None
    """Data set of the episodes, for example rows:my.jsonl; by default that of the environment."""
    picture: Path | None = None
    """File to write an animation of the oracle's episode to; its name ends with .webp."""

    def run(self) -> None:
        """Print the card, and write the animation."""
        from rich.console import Console

        from visenv.cards import animate, card_markdown, make_card
        from visenv.cards.markdown import WrappedMarkdown
        from visenv.files import replacing

        check_at_least(0, episodes=self.episodes)
        if self.picture is not None and self.picture.suffix.lower() != ".webp":
            raise ConfigurationError(
                f"--picture writes WebP: name a .webp file, not {self.picture}."
            )
        if self.picture is not None and not self.picture.parent.is_dir():
            raise ConfigurationError(f"There is no folder {self.picture.parent} for --picture.")
        card = make_card(self.env, self.episodes, self.data)
        Console().print(WrappedMarkdown(printable_lines(card_markdown(card))))
        if self.picture is not None:
            if card.episode is None:
                raise ConfigurationError(
                    f"--picture draws an episode of {card.env_id}, and none was played. "
                    f"{card.problem}"
                )
            with replacing(self.picture) as partial:
                partial.write_bytes(animate(card.episode))


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
