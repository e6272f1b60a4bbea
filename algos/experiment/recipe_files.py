"""Reads a recipe from a TOML file and command-line options.

`default_recipe` adapts the default recipe to an environment (`visenv train --env NAME`).
"""

from __future__ import annotations

import copy
import inspect
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from visenv.env import VisEnv
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.makers import settings
from visenv.plugins import import_module
from visenv.registration import load, path_of, title_of
from visenv.teacher import DEFAULT_TEACHER

from .parts import training_mixture
from .recipe import Recipe
from .sweep import Sweep, SweepArm, SweepRun, merged

_OPEN_TABLES = (
    "options",
    "environment_options",
    "evaluation_options",
    "algorithm_options",
    "baseline_options",
    "teacher_options",
)
"""Fields that accept any keys."""

DEFAULT_RECIPE = "any_environment"
"""The recipe that fits any environment; the name of its environment is `_NAME`."""

_NAME, _WARM_UP = "task", "warm-up"
_TINY = "tiny"
_RANDOM_EPISODES, _TOP_SHARE = 4096, 0.1


def recipe_path(name: str) -> Path:
    """Return the file of a recipe.

    Args:
        name: The path of a TOML file, a name of `visenv.registration.RECIPES` or of an installed
            package, or ``"package:file.toml"``.

    Raises:
        UnknownNameError: If there is no such file or recipe. The message suggests a recipe.
        ConfigurationError: If the package of the recipe cannot be imported or lacks the file.
    """
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path
    package, _, file = path_of("recipe", name).partition(":")
    title = title_of("recipe", name)
    folders = getattr(import_module(package, title), "__path__", [])
    path = Path(*folders[:1], file)
    if not folders or not path.is_file():
        raise ConfigurationError(
            f"{title} is not in the package {package!r}: it has no file {file!r}."
        )
    return path


def read_recipe(
    path: str | Path, words: Sequence[str] = (), changes: Mapping[str, Any] | None = None
) -> Recipe:
    """Read a recipe.

    Args:
        path: A TOML file. Its keys are the fields of `Recipe`.
        words: Command-line options that override fields, such as ``["--phases.rl.steps", "5"]``.
            ``--data NAME`` sets the data of the only environment.
        changes: Differences from the file, as tables of the same form; `words` override them.

    Raises:
        ConfigurationError: If the file is not TOML, or a field is unknown or has an invalid value.
            The message names the file and the field.
    """
    table = merged(_read_table(path), changes or {})
    table.pop("sweep", None)
    return _recipe(table, words, str(path))


def read_sweep(path: str | Path, words: Sequence[str] = ()) -> tuple[Recipe, list[SweepRun], float]:
    """Read a recipe with the arms of its table ``sweep``.

    Args:
        path: A TOML file, as for `read_recipe`.
        words: Command-line options that override fields of the recipe of every arm.

    Returns:
        The recipe without changes; the runs of all arms and seeds, beginning with the first seed of
        each arm; and the number of minutes after which no run is started.

    Raises:
        ConfigurationError: As for `read_recipe`, or if there is no arm.
    """
    table = _read_table(path)
    sweep: Sweep = _built(Sweep, table.pop("sweep", {}), f"{path}.sweep")
    if not sweep.arms:
        raise ConfigurationError(f"{path} has no arms; a sweep has tables [sweep.arms.<name>].")
    base = _recipe(table, words, str(path))
    runs = [
        (place, SweepRun(name, _of_arm(base, table, words, name, arm, seed)))
        for name, arm in sweep.arms.items()
        for place, seed in enumerate(arm.seeds)
    ]
    runs.sort(key=lambda each: each[0])  # stable: arms keep their order
    return base, [run for _, run in runs], sweep.minutes


def _of_arm(
    base: Recipe,
    table: Mapping[str, Any],
    words: Sequence[str],
    name: str,
    arm: SweepArm,
    seed: int,
) -> Recipe:
    recipe = _recipe(merged(table, arm.changes), words, f"sweep.arms.{name}")
    return replace(recipe, runs=base.folder / name, name=f"seed-{seed}", seed=seed)


def _read_table(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error


def _recipe(table: Mapping[str, Any], words: Sequence[str], where: str) -> Recipe:
    own = copy.deepcopy(dict(table))
    left = _move_open_words(own, _data_words(own, words))
    recipe: Recipe = _built(Recipe, own, where)
    return _with_words(recipe, left) if left else recipe


def _with_words(recipe: Recipe, words: Sequence[str]) -> Recipe:
    import tyro

    return tyro.cli(
        Recipe,
        prog="visenv train [RECIPE | --env ENVIRONMENT]",
        description=inspect.getdoc(Recipe),
        args=words,
        default=recipe,
    )


def _data_words(table: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Return the words with ``--data`` as the field of the only environment of the recipe."""
    names = list(table.get("environments", {}))
    given: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if option != "--data":
            given.append(word)
            continue
        if len(names) != 1:
            raise ConfigurationError(
                f"--data needs a recipe with one environment; this one has {len(names)}. Use "
                "--environments.NAME.data."
            )
        given.append(f"--environments.{names[0]}.data{equals}{value}")
    return given


def _move_open_words(table: dict[str, Any], words: list[str]) -> list[str]:
    """Move options such as ``--environments.x.options.preset tiny`` into the table.

    The parser of the other words, which are returned, accepts only keys that the file contains.
    """
    left: list[str] = []
    while words:
        word = words.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        parts = [_as_field(part) for part in key.split(".")]
        if not word.startswith("--") or not set(parts[:-1]) & set(_OPEN_TABLES):
            left.append(word)
            continue
        if not equals:
            if not words:
                raise ConfigurationError(f"The option {word} needs a value.")
            value = words.pop(0)
        if parts[0] in ("environments", "phases") and parts[1] not in table.get(parts[0], {}):
            raise UnknownNameError(f"name among the {parts[0]}", parts[1], table.get(parts[0], {}))
        target = table
        for part in parts[:-1]:
            target = target.setdefault(part, {})
            if not isinstance(target, dict):
                raise ConfigurationError(f"{word}: {part} is not a table.")
        (target[parts[-1]],) = settings([f"value={value}"]).values()
    return left


def _as_field(part: str) -> str:
    """Return the name of an open table as it is written in a file, with underscores."""
    field = part.replace("-", "_")
    return field if field in _OPEN_TABLES else part


def _built(kind: Any, value: Any, where: str) -> Any:
    """Convert the value of a field to its type, with errors that name the field."""
    if is_dataclass(kind):
        return _built_dataclass(kind, _table(value, where), where)
    if get_origin(kind) is dict and is_dataclass(get_args(kind)[1]):
        inner = get_args(kind)[1]
        table = _table(value, where)
        return {name: _built(inner, each, f"{where}.{name}") for name, each in table.items()}
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise ConfigurationError(f"{where}: {problem}, got {value!r:.80}.") from error


def _built_dataclass(kind: Any, table: Mapping[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)]
    for name in table:
        if name not in names:
            raise UnknownNameError(f"field of {where}", name, names)
    given = {name: _built(hints[name], each, f"{where}.{name}") for name, each in table.items()}
    try:
        return kind(**given)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where} must be a table, got {value!r:.80}.")
    return value


def default_recipe(env: str, words: Sequence[str] = ()) -> Recipe:
    """Return the default recipe for an environment.

    Args:
        env: The environment; see `visenv.registration.env_spec`.
        words: Command-line options that override fields of the recipe.

    Raises:
        ConfigurationError: If there is no such environment, it cannot be made, or an option has an
            invalid value.
    """
    path = recipe_path(DEFAULT_RECIPE)
    changes: dict[str, Any] = {
        "name": re.sub(r"[^\w.-]+", "-", env).strip("-."),
        "environments": {_NAME: {"id": env}},
    }
    recipe = read_recipe(path, words, changes)
    make_env = training_mixture(recipe, recipe.phases[_WARM_UP]).make_envs[_NAME]
    with closing(make_env()) as made:
        base = made.unwrapped
        assert isinstance(base, VisEnv)  # checked by `training_mixture`
        if _TINY in base.presets and "preset" in _parameters(env):
            changes["environments"][_NAME]["options"] = {"preset": _TINY}
        changes["phases"] = {_WARM_UP: {"demonstrations": demonstrations_of(base)}}
    return read_recipe(path, words, changes)


def demonstrations_of(env: VisEnv) -> dict[str, Any]:
    """Return the player of the demonstrations, as fields of `DemonstrationConfig`.

    The player is the first teacher of the environment, its oracle, or, if the environment has
    neither, the random policy.

    Args:
        env: The environment without wrappers.
    """
    if env.teachers:
        return {"teacher": DEFAULT_TEACHER}
    if env.has_oracle:
        return {"player": "oracle"}
    return {"player": "random", "episodes": _RANDOM_EPISODES, "top_share": _TOP_SHARE}


def _parameters(env: str) -> Sequence[str]:
    """Return the names of the arguments of an environment."""
    return list(inspect.signature(load("environment", env)).parameters)
