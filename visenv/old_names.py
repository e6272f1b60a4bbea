"""Names that settings had before, with those they have now.

A recipe, or an option of the command line, with an old name is refused; the error suggests the new
name. What a run wrote under old names is still read: `recipe.json`, `run.json`
and the state of checkpoints (`with_new_names`). Events, ground truths and saved episodes have kept
their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ANYWHERE = {
    "group_size": "num_generations",
    "kl_weight": "kl_coef",
    "optimisation": "optimization",
}
"""Old names of settings, wherever they are given."""

SECTIONS = {
    "demonstrations": {"care": "expert_rate"},
    "optimization": {
        "minibatches": "num_minibatches",
        "passes": "num_epochs",
        "reference_every": "ref_sync_steps",
        "spike": "max_grad_norm_ratio",
    },
    "policy_option": {"care": "expert_rate"},
    "rollouts": {
        "groups": "prompts_per_step",
        "restarts": "engine_restarts",
        "retries": "episode_retries",
    },
    "selection": {"distinct": "dynamic_sampling"},
}
"""Old names of settings by the table in which they are given."""

_NAMED_BY_THE_USER = ("environments", "phases")
"""Tables whose keys are names of the user's own."""

_EPISODE_SOURCES = {
    "Ahead": "AsyncRolloutSource",
    "Played": "RolloutSource",
    "Taken": "OfflineSource",
}
"""Old names of the classes that a checkpoint names (`visenv.algos.trainer.identity`)."""


def new_name(name: str, section: str = "") -> str:
    """Return the name that a setting has now.

    Args:
        name: The name of a setting, old or new.
        section: The table in which it is given, by its new name.
    """
    if section in _NAMED_BY_THE_USER:
        return name
    return SECTIONS.get(section, {}).get(name) or ANYWHERE.get(name, name)


def suggestion(name: str, known: Sequence[str]) -> str | None:
    """Return which of the known names an old name has become, or None if it is no old name."""
    old = (ANYWHERE, *SECTIONS.values())
    return next((each[name] for each in old if each.get(name) in known), None)


def with_new_names(record: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """Return settings that a run has saved, with the names that they have now.

    Args:
        record: Nested settings, JSON-like.
        section: The table that they are, by its new name.
    """
    renamed = {new_name(key, section): value for key, value in record.items()}
    if section == "episodes" and "from" in renamed:
        renamed["from"] = _EPISODE_SOURCES.get(renamed["from"], renamed["from"])
    return {
        key: with_new_names(value, key) if isinstance(value, Mapping) else value
        for key, value in renamed.items()
    }


def renamed_option(option: str) -> str | None:
    """Return the new form of an option of the command line, or None if it has no old name.

    Args:
        option: For example ``"--phases.rl.rollouts.group-size"``, without a value.
    """
    if not option.startswith("--"):
        return None
    section, parts = "", []
    for part in option.removeprefix("--").split("."):
        field = part.replace("-", "_")
        new = new_name(field, section)
        parts.append(part if new == field else new.replace("_", "-"))
        section = new
    new_option = "--" + ".".join(parts)
    return None if new_option == option else new_option


def check_options(words: Sequence[str]) -> None:
    """Check that no option of a command line has an old name.

    Raises:
        ConfigurationError: For an old name; it suggests the new one.
    """
    from visenv.errors import ConfigurationError  # which reads this module

    for word in words:
        option = word.partition("=")[0]
        if new := renamed_option(option):
            raise ConfigurationError(f"There is no option {option!r}. Did you mean {new!r}?")
