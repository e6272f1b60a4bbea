"""Renames settings in files that an earlier version of visenv wrote.

`with_new_names` renames those in `recipe.json`, `run.json` and the state of checkpoints, and
`with_new_env_options` those in the specs of environments in saved episodes. A recipe or a command
with an old name is refused like any other unknown name. The names of events, ground truths and the
fields of saved episodes have not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ANYWHERE = {
    "group_size": "num_generations",
    "kl_weight": "kl_coef",
    "optimisation": "optimization",
}
"""Old names of settings, in any table."""

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
"""Old names of settings, by the table that contains them."""

REMOVED = {
    "selection": {"spare_groups": 0, "early_groups": 0, "spare_members": 0, "ordered": True},
}
"""Settings that exist no longer, by their table, with the value that had no effect."""

COMMANDS = {"rollout": {"episodes": "groups"}}
"""Old names in the settings of a command, by the command."""

MODELS = {
    f"tiny-{family}": "tiny" for family in ("arm", "arft", "mags", "argos", "libero", "embodied")
}
"""Old names of tiny models, each with a fixed vocabulary for a family of environments."""

ENV_OPTIONS = {"stage": "preset"}
"""Old names of the options of the environments of visenv."""

_OWN_ENVIRONMENTS = "visenv/"
_TABLES_OF_ENV_OPTIONS = ("option", "options", "evaluation_options")

_NAMED_BY_THE_USER = ("environments", "phases")
"""Tables whose keys are names that the user chose."""

_EPISODE_SOURCES = {
    "Ahead": "AsyncRolloutSource",
    "Played": "RolloutSource",
    "Taken": "OfflineSource",
}
"""Old names of the classes in a checkpoint (`visenv.algos.trainer.checkpoint.identify`)."""


def _new_name(name: str, section: str = "") -> str:
    """Return the current name of a setting in a table, whose own name is new."""
    if section in _NAMED_BY_THE_USER:
        return name
    return SECTIONS.get(section, {}).get(name) or ANYWHERE.get(name, name)


def with_new_names(record: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """Return the settings that a run has saved, with the current names.

    Args:
        record: Nested settings, JSON-like.
        section: The new name of the table that contains the settings.
    """
    without = REMOVED.get(section, {})
    of_command = COMMANDS.get(str(record.get("command")), {}) if not section else {}
    renamed = {
        of_command.get(key) or _new_name(key, section): value
        for key, value in record.items()
        if key not in without or value != without[key]
    }
    if str(renamed.get("env") or renamed.get("id")).startswith(_OWN_ENVIRONMENTS):
        for table in _TABLES_OF_ENV_OPTIONS:
            if isinstance(renamed.get(table), Mapping):
                renamed[table] = with_new_env_options(renamed[table])
    if section == "episodes" and isinstance(renamed.get("from"), str):
        renamed["from"] = _EPISODE_SOURCES.get(renamed["from"], renamed["from"])
    if section == "model" and isinstance(renamed.get("name"), str):
        renamed["name"] = MODELS.get(renamed["name"], renamed["name"])
    return {
        key: with_new_names(value, key) if isinstance(value, Mapping) else value
        for key, value in renamed.items()
    }


def with_new_env_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved options of an environment of visenv, with the current names."""
    return {ENV_OPTIONS.get(name, name): value for name, value in options.items()}
