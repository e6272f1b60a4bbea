"""Runs a recipe, and continues a run that was stopped without repeating finished phases."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, nullcontext
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from visenv.background import run_here
from visenv.checksums import CHECKSUMS
from visenv.errors import RunError, UnknownNameError
from visenv.evaluation import places
from visenv.lasting_output import lasting_output
from visenv.makers import make_algorithm
from visenv.policy import EnginePolicy, Policy, TrainablePolicy
from visenv.registration import load
from visenv.rollout import MakeEnv, play
from visenv.terminal import rich_text
from visenv.types import Episode

from ..trainer import Trainer
from ..trainer.checkpoint import checkpoint_at
from ..trainer.distributed import DistributedContext
from ..trainer.evaluation import HeldOutScore, Scores
from ..trainer.interrupt import stop_signals_interrupt
from ..trainer.phase_folder import restore_logs
from . import parts
from .curves import BEFORE, TEACHER, label_after
from .demonstrations import find_demonstrations, length_warnings, phase_seed
from .folder import check_folder, claimed, link_shared
from .recipe import MODEL, Phase, Recipe
from .report import evaluation_folder, report_run
from .results import Results, measure, seconds_of, steps_as_long


def run_recipe(recipe: Recipe, shared: SharedPhases | None = None) -> None:
    """Run the phases, evaluations and controls of a recipe in the folder of the run.

    Args:
        recipe: The recipe.
        shared: Finished phases of another run with which this run starts.

    Raises:
        ConfigurationError: If a part of the recipe cannot be created; nothing is written then.
        RunError: If the folder contains another run, is missing although the run is resumed, or is
            used by another process.
        KeyboardInterrupt: After Ctrl-C or a stop signal; a phase of training writes a checkpoint.
    """
    with lasting_output(), stop_signals_interrupt():
        check_folder(recipe)
        parts.check_parts(recipe)
        check_metrics(recipe)
        processes = DistributedContext(max(phase.timeout for phase in recipe.phases.values()))
        with claimed(recipe) as folder:
            if shared is not None and processes.first:
                link_shared(shared.folder, folder, shared.phases)
            processes.wait()  # the other processes use the folder only after this call
            try:
                Experiment(recipe, folder, processes).run()
            except KeyboardInterrupt as stop:
                if str(stop):  # the message of the trainer names its checkpoint
                    raise
                raise KeyboardInterrupt(f"Stopped {folder}; continue with --resume.") from None


class SharedPhases(NamedTuple):
    """Names finished phases of another run.

    Attributes:
        folder: The folder of that run.
        phases: The names of the phases.
    """

    folder: Path
    phases: Sequence[str]


class Experiment:
    """Runs a recipe in its folder.

    Args:
        recipe: The recipe.
        folder: The folder of the run.
        processes: The processes of the run, which all make the same calls.

    Attributes:
        results: The scores, steps and seconds of finished phases.
        policy: The policy that is trained.
    """

    def __init__(self, recipe: Recipe, folder: Path, processes: DistributedContext) -> None:
        self.recipe = recipe
        self.folder = folder
        self.processes = processes
        self.console = Console(quiet=not processes.first)
        self.results = Results(folder / "results.json")
        if processes.first:
            parts.model_of(recipe)
        processes.wait()  # only the first process builds a tiny model
        self._model = parts.model_of(recipe)
        self._frozen = recipe.model.freeze_vision
        self.policy: TrainablePolicy[Any] = parts.make_policy(recipe, self._model, self._frozen)
        self._newest: str | None = None  # the phase whose weights the policy has

    def run(self) -> None:
        """Run the remaining phases and evaluations, print the table, and write the report."""
        self._evaluate(BEFORE)
        self._evaluate_teacher()
        for name, phase in self.recipe.phases.items():
            if phase.control and not self.recipe.controls:
                continue
            self._load_start(name, phase)
            if not phase.is_sft:
                self._evaluate_baselines()
            self._train(name, phase)
            self._newest = name
            self._evaluate(label_after(self.recipe, name))
            if self.recipe.controls and name == self.recipe.last_phase:
                for control in self.recipe.evaluation.controls:
                    self._evaluate(f"after {name}, {control}", control)
        if self.processes.first:
            report_run(self.recipe, self.folder, self.results, self.console)
        self.processes.wait()

    # ------------------------------------------------------------------ phases

    def _load_start(self, name: str, phase: Phase) -> None:
        """Load the weights with which a phase starts, and freeze the modules of the phase."""
        before = self.recipe.begins_with(name)
        frozen = phase.freeze_vision
        if frozen is None:
            frozen = self.recipe.model.freeze_vision
        if frozen != self._frozen or (before is None and self._newest is not None):
            self.policy = parts.make_policy(self.recipe, self._model, frozen)
            self._frozen, self._newest = frozen, None
        if before is not None and before != self._newest:
            self.policy.load_weights(self._weights(before))

    def _train(self, name: str, phase: Phase) -> None:
        """Train a phase, or load its weights if it has ended."""
        if name in self.results.steps:
            self.policy.load_weights(self._weights(name))
            for warning in self.processes.in_first(lambda: self._restore_logs(name)):
                self.console.print(rich_text(warning))
            return
        demonstrations = self._demonstrations(name, phase) if phase.is_sft else []
        steps = self._steps(name, phase)
        sampler = None if phase.is_sft else parts.make_sampler(self.recipe, self._model)
        with nullcontext() if sampler is None else closing(sampler):
            trainer = self._make_trainer(name, phase, steps, sampler)
            self.console.rule(rich_text(f"{name}: {steps} steps"))
            if phase.is_sft:
                trainer.fit(demonstrations, phase.demonstrations.batch_size)
            else:
                trainer.train(parts.training_mixture(self.recipe, phase))
        seconds = seconds_of(trainer.folder) if self.processes.first else 0.0
        self.results.finish(name, trainer.step, self.processes.broadcast(seconds))

    def _restore_logs(self, phase: str) -> list[str]:
        """Restore the metrics of a finished phase from its last checkpoint."""
        last = self._last_checkpoint(phase)
        return restore_logs(self.folder / phase, last, self.results.steps[phase])

    def _make_trainer(
        self, name: str, phase: Phase, steps: int, sampler: EnginePolicy[Any] | None
    ) -> Trainer:
        folder = self.folder / name
        return Trainer(
            self.policy,
            make_algorithm(phase.algorithm, phase.algorithm_options),
            phase.trainer(phase_seed(self.recipe, name), steps),
            folder=folder,
            resume=folder.is_dir(),
            sampler=sampler,
            executor=None if phase.is_sft else parts.make_executor(self.recipe),
            stage=name,
            reference=self._reference(phase),
            held_out=parts.held_out(self.recipe, phase),
            callbacks=parts.make_callbacks(self.recipe),
            trackers=self.recipe.trackers,
        )

    def _reference(self, phase: Phase) -> TrainablePolicy[Any] | None:
        """Return the reference policy that a phase names, or None for its initial weights."""
        if not phase.reference:
            return None
        policy = parts.make_policy(self.recipe, self._model, self._frozen)
        if phase.reference != MODEL:
            policy.load_weights(self._weights(phase.reference))
        return policy.copy_frozen()

    def _demonstrations(self, name: str, phase: Phase) -> list[Episode]:
        """Return the demonstrations of a phase of SFT, and measure the time of sampling them."""
        started = time.perf_counter()
        found = find_demonstrations(self.policy, self.recipe, phase, self.processes)
        for warning in length_warnings(found, self.recipe):
            self.console.print(rich_text(f"Warning: phase {name}: {warning}"))
        if phase.demonstrations.samples_of and name not in self.results.sampling_seconds:
            seconds = self.processes.broadcast(time.perf_counter() - started)
            self.results.sampled(name, seconds)
        return found

    def _steps(self, name: str, phase: Phase) -> int:
        """Return the number of steps, which can depend on the time of another phase."""
        if not phase.as_long_as:
            return phase.steps
        count = partial(steps_as_long, name, self.recipe, self.folder, self.results)
        on_cpu = all(weight.device.type == "cpu" for weight in self.policy.parameters())
        return self.processes.in_first(lambda: count(on_cpu=on_cpu))

    def _weights(self, phase: str) -> Path:
        """Return the folder of the weights after the last step of a finished phase."""
        last = self._last_checkpoint(phase)
        if not (last / "policy" / CHECKSUMS).exists():
            raise RunError(
                f"The phase {phase} of {self.folder} ended after {self.results.steps[phase]} steps,"
                f" but its checkpoint {last} is missing or incomplete. Restore it, or start a new "
                "run."
            )
        return last / "policy"

    def _last_checkpoint(self, phase: str) -> Path:
        return checkpoint_at(self.folder / phase / "checkpoints", self.results.steps[phase])

    # ------------------------------------------------------------------ evaluation

    def _evaluate(self, label: str, control: str = "", policy: Policy[Any] | None = None) -> None:
        """Score a policy, by default the trained one, on the held-out episodes, unless known."""
        if label in self.results.scores:
            return
        folder = evaluation_folder(self.folder, label)
        scores = measure(policy or self.policy, self.recipe, control, folder, self.processes)
        if not self.results.scores:
            self._check_metrics(scores)
        self.results.add(label, scores)
        for env, ways in scores.items():
            named = f" ({env})" if len(scores) > 1 else ""
            told_ways = "; ".join(f"{way} {score}" for way, score in ways.items())
            self.console.print(rich_text(f"{label}{named}: {told_ways}"))

    def _check_metrics(self, scores: Scores) -> None:
        """Print the absent metrics of the recipe, or raise an error if one looks misspelled."""
        known = {"reward"}
        for ways in scores.values():
            for score in ways.values():
                known |= score.metrics.keys()
        for name in absent_metrics(self.recipe.evaluation.metrics, known):
            self.console.print(rich_text(f"No held-out episode has the metric {name!r}."))

    def _evaluate_baselines(self) -> None:
        """Score the baselines with the model before the first phase of RL."""
        for name in self.recipe.evaluation.baselines:
            baseline = parts.make_baseline(self.recipe, name, self.policy)
            self._evaluate(f"baseline {name}", policy=baseline)

    def _evaluate_teacher(self) -> None:
        """Score the teacher of the first phase whose demonstrations a teacher plays."""
        for phase in self.recipe.phases.values():
            told = phase.demonstrations
            if told.episodes and told.teacher:
                self._evaluate(TEACHER, policy=parts.make_player(told))
                return


def check_metrics(recipe: Recipe) -> None:
    """Compare the metrics of a recipe with those of its environments.

    If the recipe names metrics that are not headline metrics, the oracle plays an episode of each
    environment, which shows its other metrics.

    Raises:
        ConfigurationError: If an environment cannot be created.
        UnknownNameError: If an environment lacks a metric whose name looks like a misspelled one.
    """
    names = recipe.evaluation.metrics
    known = {"reward"}.union(*parts.headline_metrics(recipe).values())
    if known.issuperset(names):
        return
    for make_env in parts.evaluation_makers(recipe).values():
        known |= HeldOutScore.of(list(_oracle_episode(make_env))).metrics.keys()
    absent_metrics(names, known)


def absent_metrics(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the names that are not known.

    An episode need not have all metrics of its environment, so that a name may be right.

    Raises:
        UnknownNameError: If a name looks like a misspelled one; suggests the nearest.
    """
    absent = [name for name in names if name not in known]
    for name in absent:
        if get_close_matches(name, known, n=1, cutoff=0.8):
            raise UnknownNameError("metric of the environments", name, known)
    return absent


def _oracle_episode(make_env: MakeEnv) -> Iterator[Episode]:
    """Yield an episode of the oracle; none if a service failed, which the run itself reports."""
    with closing(make_env()) as env:
        (spec,) = places(env, 1)
        episode = run_here(play(env, load("policy", "oracle")(), spec))
    if episode.failure is None:
        yield episode
