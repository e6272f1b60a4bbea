"""Creates the parts of a recipe: environments, model, sampler, executor, algorithms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from visenv.credentials import check_no_credentials
from visenv.curation.difficulty import SourceSubset
from visenv.curation.lines import JsonLines
from visenv.data.open import open_data
from visenv.data.source import Source
from visenv.env import VisEnv
from visenv.errors import ConfigurationError
from visenv.evaluation.controls import controlled
from visenv.launcher import local_rank
from visenv.makers import (
    check_arguments,
    check_model_name,
    env_maker,
    find_model,
    held_out_data,
    make_algorithm,
    training_data,
)
from visenv.packages import require_package
from visenv.plugins import describe_error
from visenv.policy import EnginePolicy, Policy, TrainablePolicy
from visenv.registration import load
from visenv.rollout import Env, Executor, Mixture, ProcessExecutor, ThreadExecutor
from visenv.rollout.collector import CONCURRENCY
from visenv.teacher import make_teacher

from ..trainer import Callback, HeldOut
from ..trainer.placement import Placement
from ..trainer.trackers import check_trackers
from .config import DemonstrationConfig, EnvironmentConfig, SamplerConfig
from .recipe import Phase, Recipe


def training_mixture(recipe: Recipe, phase: Phase) -> Mixture:
    """Return the environments of a phase.

    Raises:
        ConfigurationError: If an environment cannot be created.
    """
    return Mixture(
        {name: _training_maker(name, each, phase) for name, each in recipe.environments.items()},
        {name: each.weight for name, each in recipe.environments.items()},
        by_pass_rate=recipe.mixture == "pass_rate",
    )


def _training_maker(name: str, told: EnvironmentConfig, phase: Phase) -> Callable[[], Env]:
    options = {**told.options, **phase.options_of(name)}
    return env_maker(told.id, options, _training_data(told))


def _training_data(told: EnvironmentConfig) -> str | Source | None:
    if told.rows is None:
        return training_data(told.data) if told.data else None
    try:
        rows = [line.row["index"] for line in JsonLines(told.rows)]
    except KeyError as error:
        raise ConfigurationError(
            f"{told.rows} has a row without the field {error}; expected the rows that `visenv data "
            "difficulty` writes."
        ) from error
    source: Any = open_data(training_data(told.data))
    return SourceSubset(source, rows)


def evaluation_makers(recipe: Recipe, control: str = "") -> dict[str, Callable[[], Env]]:
    """Return functions that create the held-out environments, by name.

    Args:
        recipe: The recipe.
        control: A control of `visenv.evaluation.controls`.

    Raises:
        ConfigurationError: If an environment cannot be created, or does not have the control.
    """
    made: dict[str, Callable[[], Env]] = {}
    for name, each in recipe.environments.items():
        data = each.evaluation_data or None
        if each.data and data is None:
            data = held_out_data(each.data)
            if data is None:
                raise ConfigurationError(
                    f"environments.{name}: {each.data} has no held-out split; name the data to "
                    "evaluate on with evaluation_data."
                )
        made[name] = env_maker(each.id, {**each.options, **each.evaluation_options}, data)
        if control:
            made[name] = controlled(made[name], control)
    return made


def headline_metrics(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """Return the headline metrics of each environment, by the names of the recipe."""
    metrics: dict[str, tuple[str, ...]] = {}
    for name, make_env in evaluation_makers(recipe).items():
        env = make_env()
        base = env.unwrapped
        assert isinstance(base, VisEnv)  # checked by env_maker
        metrics[name] = base.headline_metrics
        env.close()
    return metrics


def held_out(recipe: Recipe, phase: Phase) -> HeldOut | None:
    """Return the settings of evaluations during a phase, or None if there are none."""
    told = recipe.evaluation
    every = phase.evaluate_every
    if every is None:
        every = 0 if phase.control else told.every
    if not every:
        return None
    return HeldOut(
        evaluation_makers(recipe),
        {name: metrics[0] for name, metrics in headline_metrics(recipe).items()},
        min(told.every_episodes or told.episodes, told.episodes),
        told.max_tokens,
        every,
        told.temperature,
        evaluation_placement(recipe),
    )


def evaluation_placement(recipe: Recipe) -> Placement:
    """Return where the environments of evaluations and demonstrations run.

    They run where those of RL run, so that a faulty environment cannot end the run. As many threads
    or processes are started as RL has at most, but not more than `CONCURRENCY`.
    """
    if recipe.executor == "inline":
        return Placement()
    phases = (phase for phase in recipe.phases.values() if not phase.is_sft)
    most = min((phase.rollouts.concurrency for phase in phases), default=CONCURRENCY)
    return Placement(partial(make_executor, recipe), min(most, CONCURRENCY))


def make_callbacks(recipe: Recipe) -> list[Callback]:
    """Return the callbacks of the recipe, new ones for each phase.

    Raises:
        ConfigurationError: If a class cannot be imported or instantiated, or is not a `Callback`.
    """
    made: list[Callback] = []
    for name in recipe.callbacks:
        kind = load("callback", name)
        if not (isinstance(kind, type) and issubclass(kind, Callback)):
            raise ConfigurationError(f"{name} is no subclass of visenv.algos.trainer.Callback.")
        try:
            made.append(kind())
        except Exception as error:
            raise ConfigurationError(f"{name} cannot be made: {describe_error(error)}") from error
    return made


def make_policy(recipe: Recipe, model: str | Path, freeze_vision: bool) -> TrainablePolicy[Any]:
    """Return the policy that is trained.

    Args:
        recipe: The recipe.
        model: The initial checkpoint.
        freeze_vision: Whether the vision tower is frozen.
    """
    told = recipe.model
    options = dict(told.options)
    if told.lora_rank:
        options["lora"] = {**options.get("lora", {}), "rank": told.lora_rank}
    gpu = local_rank()
    try:
        policy: TrainablePolicy[Any] = load("policy", "transformers")(
            model,
            device=f"cuda:{gpu}" if gpu is not None and told.device == "cuda" else told.device,
            dtype=told.dtype,
            freeze_vision=freeze_vision,
            **options,
        )
    except TypeError as error:
        raise ConfigurationError(
            f"An entry of model.options is not an option of TransformersPolicy: {error}."
        ) from error
    return policy


def make_player(demonstrations: DemonstrationConfig) -> Policy[Any]:
    """Return the player of demonstrations: a teacher, the oracle, or the random policy."""
    told = demonstrations
    player: Policy[Any]
    if told.teacher:
        player = load("policy", "teacher")(told.teacher, told.strength, **told.teacher_options)
    elif told.player == "oracle":
        player = load("policy", "oracle")(expert_rate=told.expert_rate, guess=told.guess)
    else:
        player = load("policy", told.player)()
    return player


def make_baseline(recipe: Recipe, name: str, policy: Policy[Any]) -> Policy[Any]:
    """Return a baseline of the recipe that wraps a policy."""
    made = load("policy", name)
    try:
        baseline: Policy[Any] = made(policy, **recipe.evaluation.baseline_options)
    except TypeError as error:
        raise ConfigurationError(
            f"An entry of evaluation.baseline_options is not an option of {name!r}: {error}."
        ) from error
    return baseline


def make_sampler(recipe: Recipe, model: str | Path) -> EnginePolicy[Any] | None:
    """Return the engine that samples instead of the policy, if the recipe names one."""
    if recipe.sampler.name == "transformers":
        return None
    made = load("policy", recipe.sampler.name)
    try:
        engine: EnginePolicy[Any] = made(model, **recipe.sampler.options)
    except TypeError as error:
        raise ConfigurationError(
            f"An entry of sampler.options is not an option of {recipe.sampler.name!r}: {error}."
        ) from error
    return engine


def make_executor(recipe: Recipe) -> Executor | None:
    """Return the executor of the recipe, or None for environments on the event loop."""
    match recipe.executor:
        case "threads":
            return ThreadExecutor()
        case "processes":
            return ProcessExecutor()
        case "ray":
            require_package("The executor 'ray'", "ray")
            from visenv.rollout.ray_executor import RayExecutor

            return RayExecutor()
        case _:
            return None


def model_of(recipe: Recipe) -> str | Path:
    """Return the initial checkpoint; a tiny model is built in the folder of the run.

    The tokenizer of a tiny model is trained on the environments of the first phase, so that the
    arms of a sweep have the same tokenizer.
    """
    first = next(iter(recipe.phases.values()))
    return find_model(
        recipe.model.name,
        recipe.folder / "model",
        partial(training_mixture, recipe, first),
        seed=recipe.seed,
        episodes=recipe.model.tokenizer_episodes,
    )


def check_parts(recipe: Recipe) -> None:
    """Create each environment and algorithm once, to find mistakes before the run starts.

    Raises:
        ConfigurationError: If a part cannot be created. The message names it.
    """
    _check_no_credentials(recipe)
    check_model_name(recipe.model.name)
    for name, phase in recipe.phases.items():
        algorithm = make_algorithm(phase.algorithm, phase.algorithm_options)
        if phase.reference and not algorithm.needs_reference:
            raise ConfigurationError(
                f"phases.{name}: a reference needs an algorithm with a KL term; set "
                "algorithm_options.kl_coef."
            )
        for file in phase.demonstrations.files:
            if not file.is_file():
                raise ConfigurationError(f"phases.{name}: there is no file {file}.")
        mixture = training_mixture(recipe, phase)
        if phase.demonstrations.teacher:
            _check_teacher(mixture, phase.demonstrations)
    for baseline in recipe.evaluation.baselines:
        _check_baseline(recipe, baseline)
    for control in ("", *recipe.evaluation.controls):
        evaluation_makers(recipe, control)
    _check_sampler(recipe.sampler)
    make_executor(recipe)
    check_trackers(recipe.trackers)
    make_callbacks(recipe)


def _check_no_credentials(recipe: Recipe) -> None:
    """Raise a `ConfigurationError` if an option looks like a credential: the recipe is saved."""
    check_no_credentials("model", recipe.model.options)
    check_no_credentials("sampler", recipe.sampler.options)
    check_no_credentials("baselines", recipe.evaluation.baseline_options)
    for name, environment in recipe.environments.items():
        check_no_credentials(f"environment {name!r}", asdict(environment))
    for name, phase in recipe.phases.items():
        given = (phase.options, phase.environment_options, phase.algorithm_options)
        for options in given:
            check_no_credentials(f"phase {name!r}", options)


def _check_teacher(mixture: Mixture, told: DemonstrationConfig) -> None:
    """Raise a `ConfigurationError` if an environment has no such teacher."""
    for make_env in mixture.make_envs.values():
        env = make_env()
        base = env.unwrapped
        assert isinstance(base, VisEnv)  # checked by env_maker
        make_teacher(base, told.teacher, told.strength, told.teacher_options)
        env.close()


def _check_sampler(told: SamplerConfig) -> None:
    if told.name == "transformers":
        return
    made = load("policy", told.name)
    if not (isinstance(made, type) and issubclass(made, EnginePolicy)):
        raise ConfigurationError(f"sampler: {told.name} is no engine that can receive weights.")
    given = {"model": "", **told.options}
    check_arguments(made, f"sampler {told.name!r}", "The sampler", "--sampler.options", given)


def _check_baseline(recipe: Recipe, name: str) -> None:
    if "policy" not in inspect.signature(load("policy", name)).parameters:
        raise ConfigurationError(f"evaluation.baselines: {name} is no baseline (it has no policy).")
    make_baseline(recipe, name, load("policy", "oracle")())
