"""Reads the names of visenv as strings: environments, policies, algorithms, data sets.

The names of a family are in its manifest (`visenv.family`), those of the core, `policies` and
`algos` in this module. Other packages add names by entry points (`visenv.plugins`). None of the
objects is imported; `load` imports an object when it is requested.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from visenv import plugins
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.family import Family
from visenv.packages import missing_package
from visenv.received import require_trust

NAMESPACE = "visenv"
_VLLM = "visenv.policies.vllm."  # needs PyTorch too, which its extra installs


CORE = Family(
    data={
        "rows": "visenv.data.user_rows:Rows",
        "vstar": "visenv.data.vstar:VStarBench",
        "hrbench": "visenv.data.hrbench:HRBench",
    },
    records={
        "QuestionTruth": "visenv.types.ground_truth:QuestionTruth",
        "SceneTruth": "visenv.worlds.scenes.truth:SceneTruth",
        "HRBenchTruth": "visenv.data.hrbench:HRBenchTruth",
        "Referred": "visenv.verifier.referred:Referred",
        "Selected": "visenv.verifier.referred:Selected",
        "SumTruth": "visenv.testing.toy:SumTruth",
    },
    curation={
        "questions": "visenv.curation.questions:Questions",
        "trajectories": "visenv.curation.trajectories:Trajectories",
        "filter": "visenv.curation.trajectories:Filter",
        "export": "visenv.curation.export:Export",
        "difficulty": "visenv.curation.difficulty:Difficulty",
    },
    recipes={
        "any_environment": "visenv.recipes:any_environment.toml",
        "rows": "visenv.recipes:rows.toml",
    },
    scorers={
        "openai": "visenv.scorers.backends.openai:OpenAIBackend",
        "transformers": "visenv.scorers.backends.transformers:TransformersBackend",
        "encoder": "visenv.scorers.backends.encoder:EncoderBackend",
        "detector": "visenv.scorers.backends.detector:DetectorBackend",
        "segmenter": "visenv.scorers.backends.segmenter:SegmenterBackend",
        "rules": "visenv.scorers.backends.rules:RulesBackend",
        "recorded": "visenv.scorers.backends.recorded:RecordedBackend",
    },
    wrappers={
        "NoImage": "visenv.evaluation.controls:NoImage",
        "NoTool": "visenv.evaluation.controls:NoTool",
        "ShuffledResults": "visenv.evaluation.controls:ShuffledResults",
        "RewardWrapper": "visenv.rewards.wrapper:RewardWrapper",
        "ClipReward": "gymnasium.wrappers.transform_reward:ClipReward",
        "TimeLimit": "gymnasium.wrappers.common:TimeLimit",
        "OrderEnforcing": "gymnasium.wrappers.common:OrderEnforcing",
        "PassiveEnvChecker": "gymnasium.wrappers.common:PassiveEnvChecker",
    },
)
"""The manifest of the core: names that belong to no family."""

MANIFESTS = (
    "visenv.envs.zoom_vqa:FAMILY",
    "visenv.envs.arm:FAMILY",
    "visenv.envs.arft:FAMILY",
    "visenv.envs.mags:FAMILY",
    "visenv.envs.argos:FAMILY",
    "visenv.envs.libero:FAMILY",
    "visenv.envs.embodied:FAMILY",
)
"""The manifests of visenv's own families; another package names its manifest as an entry point."""

_FAMILIES = (CORE, *(plugins.read_manifest(path, f"The manifest {path!r}") for path in MANIFESTS))

POLICIES: dict[str, str] = {
    "scripted": "visenv.policies.scripted:ScriptedPolicy",
    "oracle": "visenv.policies.oracle:OraclePolicy",
    "teacher": "visenv.policies.teacher:TeacherPolicy",
    "random": "visenv.policies.random:RandomPolicy",
    "openai": "visenv.policies.openai:OpenAIPolicy",
    "transformers": "visenv.policies.transformers:TransformersPolicy",
    "vllm": "visenv.policies.vllm.policy:VLLMPolicy",
    "vllm-server": "visenv.policies.vllm.server_policy:VLLMServerPolicy",
    "direct": "visenv.policies.baselines:DirectPolicy",
    "cot": "visenv.policies.baselines:ChainOfThoughtPolicy",
    "rag": "visenv.policies.baselines:RetrievalPolicy",
    "zoom-refine": "visenv.policies.baselines:ZoomRefinePolicy",
}

ALGORITHMS: dict[str, str] = {
    "grpo": "visenv.algos.policy_gradient:GRPO",
    "dr_grpo": "visenv.algos.policy_gradient:DrGRPO",
    "dapo": "visenv.algos.policy_gradient:DAPO",
    "bnpo": "visenv.algos.policy_gradient:BNPO",
    "gspo": "visenv.algos.policy_gradient:GSPO",
    "cispo": "visenv.algos.policy_gradient:CISPO",
    "rloo": "visenv.algos.policy_gradient:RLOO",
    "reinforce++": "visenv.algos.policy_gradient:ReinforcePlusPlus",
    "rejection_sampling": "visenv.algos.policy_gradient:RejectionSampling",
    "sft": "visenv.algos.sft:SFT",
}

MODELS: dict[str, str] = {
    "tiny": "visenv.policies.transformers.tiny:tiny",
}

COMMANDS: dict[str, str] = {
    "train": "visenv.algos.experiment.command:train",
    "compare": "visenv.algos.comparison:compare",
}
"""The functions that run commands of `visenv` outside the core."""

EXAMINATIONS: dict[str, str] = {
    "model": "visenv.policies.transformers.examination:examine",
}
"""The functions with which `visenv doctor` examines more than the installation."""

MODEL_FAMILIES: dict[str, str] = {
    "qwen2_5_vl": "visenv.policies.tokens.qwen_vl:qwen_vl",
    "qwen3_vl": "visenv.policies.tokens.qwen_vl:qwen_vl",
}
"""Families of models, by the type of the model in the configuration of a checkpoint."""

CALLBACKS: dict[str, str] = {}
"""Callbacks of the trainer. visenv has none of its own; users pass ``module:Class``."""


def _merged(section: str) -> dict[str, str]:
    """Return the names of all own manifests in one section, with their objects."""
    return {name: path for family in _FAMILIES for name, path in family.names(section).items()}


TABLES = {
    **{kind: _merged(section) for kind, section in plugins.SECTIONS.items()},
    "policy": POLICIES,
    "algorithm": ALGORITHMS,
    "callback": CALLBACKS,
    "command": COMMANDS,
    "model": MODELS,
    "model family": MODEL_FAMILIES,
    "examination": EXAMINATIONS,
}
"""The names of visenv's own objects by their kind."""

ENVIRONMENTS = {name: entry for family in _FAMILIES for name, entry in family.environments.items()}
DATA = TABLES["data set"]
RECORD_TYPES = TABLES["record type"]
CURATION = TABLES["curation step"]
SUITES = TABLES["suite"]
RECIPES = TABLES["recipe"]
SCORERS = TABLES["scorer"]
BASELINE_PROMPTS = TABLES["baseline prompts"]
WRAPPERS = TABLES["wrapper"]


def load(kind: str, name: str) -> Any:
    """Return the object with this name.

    Args:
        kind: A key of `TABLES`.
        name: A key of that table, a name that an installed package adds (`visenv.plugins`), or
            ``"module:attribute"``. An environment may also be an id of Gymnasium, or
            ``"module:Id"``; see `env_spec`.

    Raises:
        UnknownNameError: If there is no such kind or name; suggests the nearest.
        UntrustedNameError: If a received file gives ``"module:attribute"`` (`visenv.received`).
        ConfigurationError: If the object cannot be imported; the message names the missing extra.
    """
    if kind not in TABLES:
        raise UnknownNameError("kind of object", kind, TABLES)
    if kind == "environment":
        entry_point: Any = env_spec(name).entry_point
        return entry_point if callable(entry_point) else _import(kind, name, entry_point)
    return _import(kind, name, path_of(kind, name))


def path_of(kind: str, name: str) -> str:
    """Return the object of a name as ``"module:attribute"``, without importing it.

    Raises:
        UnknownNameError: If there is no such name; suggests the nearest.
        UntrustedNameError: If a received file gives ``"module:attribute"``.
        ConfigurationError: If two packages add the same name.
    """
    table = TABLES[kind]
    if name in table:
        return table[name]
    if ":" in name:
        require_trust(kind, name, [name])
        return name
    plugin = plugins.find(kind, name)
    if plugin is None:
        advice = " ".join(plugins.broken_manifests())
        raise UnknownNameError(kind, name, known_names(kind), advice)
    return plugin.path


def known_names(kind: str) -> list[str]:
    """Return the names in visenv's own table, and the names that installed packages add."""
    added = [plugin.name for plugin in plugins.installed(kind)]
    return [*dict.fromkeys([*TABLES[kind], *added])]


def title_of(kind: str, name: str) -> str:
    """Return the description of a name in errors: its kind, and the package that adds it."""
    plugin = None if name in TABLES[kind] or ":" in name else plugins.find(kind, name)
    return plugin.title if plugin else f"The {kind} {name!r}"


def _import(kind: str, name: str, path: str) -> Any:
    try:
        return plugins.import_attribute(path, title_of(kind, name))
    except ConfigurationError as error:
        missing = error.__cause__
        if name not in TABLES[kind] or not isinstance(missing, ModuleNotFoundError):
            raise
        extra = "vllm" if path.startswith(_VLLM) else None
        raise missing_package(f"The {kind} {name!r}", missing, extra) from missing


def env_spec(name: str) -> EnvSpec:
    """Return the spec of an environment, which `gym.make` accepts in place of an id.

    Args:
        name: A registered id (the namespace ``visenv/`` may be omitted), an id that an installed
            package adds, ``"module:Id"`` for an id that is registered when the module is imported
            (Gymnasium's form), or ``"module:Class"``.

    Raises:
        UnknownNameError: If there is no such environment; suggests the nearest.
        UntrustedNameError: If a received file gives a module.
        ConfigurationError: If the module or the package cannot be imported.
    """
    for each in (name if "/" in name else f"{NAMESPACE}/{name}", name):
        if each in gym.registry:
            return gym.registry[each]
    if ":" in name:
        require_trust("environment", name)
        return _spec_in_module(name)
    plugin = plugins.find("environment", name)
    if plugin is None:
        advice = ["The name of your own environment is module:Id or module:Class."]
        advice += plugins.broken_manifests()
        raise UnknownNameError("environment", name, known_names("environment"), " ".join(advice))
    plugins.import_attribute(plugin.path, plugin.title)
    if name not in gym.registry:  # importing the package may have registered it
        try:
            register(name, plugin.path)
        except gym.error.Error as error:
            raise ConfigurationError(
                f"{plugin.title} has the name {name!r}; expected an id of Gymnasium, such as "
                "'namespace/Name-v0'."
            ) from error
    return gym.registry[name]


def _spec_in_module(name: str) -> EnvSpec:
    """Return the spec of ``module:Id`` or ``module:Class``."""
    title = f"The environment {name!r}"
    module, _, rest = name.partition(":")
    plugins.import_module(module, title)
    if rest in gym.registry:
        return gym.registry[rest]
    if not rest.isidentifier():
        raise ConfigurationError(
            f"{title} cannot be loaded: importing {module!r} does not register the id {rest!r}."
        )
    plugins.import_attribute(name, title)
    return EnvSpec(name, entry_point=name, order_enforce=False)


def register_all() -> None:
    """Register every environment with Gymnasium."""
    for env_id, entry in ENVIRONMENTS.items():
        register(env_id, entry.entry_point)


def register(env_id: str, entry_point: str, **options: Any) -> None:
    """Register one environment with Gymnasium, with visenv's episode pool for `gym.make_vec`.

    An id that is already registered with the same entry point remains unchanged. Gymnasium's checks
    at the first reset and step are off, because they make an environment unusable if its first
    reset raises, as for a row that cannot be read; `visenv validate` runs stricter ones.

    Args:
        env_id: The id for `gym.make`.
        entry_point: ``"module:function"`` that makes the environment, reward included.
        **options: Further arguments of `gym.register`, for example ``max_episode_steps``.
    """
    if env_id in gym.registry and gym.registry[env_id].entry_point == entry_point:
        return
    gym.register(
        env_id,
        entry_point,
        order_enforce=False,  # `VisEnv.step` checks this itself
        vector_entry_point=f"visenv.rollout.vector_entry_points:{env_id}",
        **{"disable_env_checker": True, **options},
    )
