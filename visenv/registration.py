"""Lists every name in visenv as strings: environments, policies, algorithms, data sets.

This module imports none of these objects; `load` imports an object when it is requested. No other
module of the core refers to the families. Other packages add names by entry points
(`visenv.plugins`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from visenv import plugins
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.packages import missing_package
from visenv.received import require_trust

NAMESPACE = "visenv"
_VLLM = "visenv.policies.vllm:"  # needs PyTorch too, which its extra installs


class EnvEntry(NamedTuple):
    """Describes one environment: the function that makes it, and a description of one line."""

    entry_point: str
    summary: str


ENVIRONMENTS: dict[str, EnvEntry] = {
    "visenv/ZoomVQA-v0": EnvEntry(
        "visenv.envs.zoom_vqa:make", "zoom into an image once, then answer (Groundlight)"
    ),
    "visenv/ArmZoom-v0": EnvEntry(
        "visenv.envs.arm:make_zoom", "judge responses about an image, zooming in (ARM-Thinker)"
    ),
    "visenv/ArmDoc-v0": EnvEntry(
        "visenv.envs.arm:make_doc", "judge responses about a document, page by page (ARM-Thinker)"
    ),
    "visenv/ArmIF-v0": EnvEntry(
        "visenv.envs.arm:make_if", "judge whether a text satisfies a constraint (ARM-Thinker)"
    ),
    "visenv/ArmPreference-v0": EnvEntry(
        "visenv.envs.arm:make_preference", "judge which response is preferred (ARM-Thinker)"
    ),
    "visenv/ArmVQA-v0": EnvEntry(
        "visenv.envs.arm:make_vqa", "answer about an image, zooming in (ARM-Thinker)"
    ),
    "visenv/ArmDocVQA-v0": EnvEntry(
        "visenv.envs.arm:make_doc_vqa", "answer about a document, page by page (ARM-Thinker)"
    ),
    "visenv/ArftCoding-v0": EnvEntry(
        "visenv.envs.arft:make_coding", "repair an image by code, then answer (Visual-ARFT)"
    ),
    "visenv/ArftSearch-v0": EnvEntry(
        "visenv.envs.arft:make_search", "search for facts that an image does not show (Visual-ARFT)"
    ),
    "visenv/MagsZoom-v0": EnvEntry(
        "visenv.envs.mags:make", "name boxes, see them enlarged, then answer (Mags-RL)"
    ),
    "visenv/ArgosImage-v0": EnvEntry(
        "visenv.envs.argos:make_image", "reason about an image with checked points (Argos)"
    ),
    "visenv/ArgosVideo-v0": EnvEntry(
        "visenv.envs.argos:make_video", "reason about a video with points and spans (Argos)"
    ),
    "visenv/Libero-v0": EnvEntry(
        "visenv.envs.libero:make", "move a robot arm by chunks of actions (LIBERO, Argos)"
    ),
    "visenv/House-v0": EnvEntry(
        "visenv.envs.embodied:make_house", "plan and act in a procedural house (EmbodiedBench)"
    ),
    "visenv/EBAlfred-v0": EnvEntry(
        "visenv.envs.embodied:make_eb_alfred",
        "household tasks with the actions of ALFRED, in House",
    ),
    "visenv/EBHabitat-v0": EnvEntry(
        "visenv.envs.embodied:make_eb_habitat", "rearrangement tasks as in EB-Habitat, in House"
    ),
}

POLICIES: dict[str, str] = {
    "scripted": "visenv.policies.scripted:ScriptedPolicy",
    "oracle": "visenv.policies.oracle:OraclePolicy",
    "teacher": "visenv.policies.teacher:TeacherPolicy",
    "random": "visenv.policies.random:RandomPolicy",
    "openai": "visenv.policies.openai:OpenAIPolicy",
    "transformers": "visenv.policies.transformers:TransformersPolicy",
    "vllm": "visenv.policies.vllm:VLLMPolicy",
    "vllm-server": "visenv.policies.vllm:VLLMServerPolicy",
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

DATA: dict[str, str] = {
    "rows": "visenv.data.user_rows:Rows",
    "textvqa": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQA",
    "vstar": "visenv.data.vstar:VStarBench",
    "hrbench": "visenv.data.hrbench:HRBench",
    "armbench": "visenv.envs.arm.datasets.armbench:ARMBench",
    "vl_rewardbench": "visenv.envs.arm.datasets.vl_rewardbench:VLRewardBench",
    "rewardbench2": "visenv.envs.arm.datasets.rewardbench2:RewardBench2",
    "llava_critic": "visenv.envs.arm.datasets.llava_critic:LLaVACritic",
    "deepeyes": "visenv.envs.arm.datasets.deepeyes:DeepEyes",
    "visual_probe": "visenv.envs.arm.datasets.visual_probe:VisualProbe",
    "mme_realworld": "visenv.envs.arm.datasets.mme_realworld:MMERealWorld",
    "vlmeval": "visenv.envs.arm.datasets.vlmeval:VlmEval",
    "mp_docvqa": "visenv.envs.arm.datasets.mp_docvqa:MPDocVQA",
    "mat_coding": "visenv.envs.arft.datasets.mat_coding:MatCoding",
    "mat_search": "visenv.envs.arft.datasets.mat_search:MatSearch",
    "hotpotqa": "visenv.envs.arft.datasets.hotpotqa:HotpotQA",
    "2wikimultihopqa": "visenv.envs.arft.datasets.wikimultihop:WikiMultihop",
    "musique": "visenv.envs.arft.datasets.musique:MuSiQue",
    "bamboogle": "visenv.envs.arft.datasets.bamboogle:Bamboogle",
    "mm_ifeval": "visenv.envs.arm.datasets.mm_ifeval:MMIFEval",
    "mmlongbench": "visenv.envs.arm.datasets.mmlongbench:MMLongBench",
    "pdf": "visenv.envs.arm.datasets.pdf_questions:PdfQuestions",
    "vsr": "visenv.envs.mags.datasets.vsr:VSR",
    "tallyqa": "visenv.envs.mags.datasets.tallyqa:TallyQA",
    "gqa": "visenv.envs.mags.datasets.gqa:GQA",
    "mags": "visenv.envs.mags.datasets.curated:MagsRows",
    "blink": "visenv.envs.argos.datasets.blink:Blink",
    "mindcube": "visenv.envs.argos.datasets.mindcube:MindCube",
    "cv_bench": "visenv.envs.argos.datasets.cv_bench:CVBench",
    "counter_curate": "visenv.envs.argos.datasets.captions:CounterCurate",
    "sugar_crepe": "visenv.envs.argos.datasets.captions:SugarCrepe",
    "hallusion_bench": "visenv.envs.argos.datasets.hallusion_bench:HallusionBench",
    "video_r1": "visenv.envs.argos.datasets.video_r1:VideoR1",
    "pixmo_count": "visenv.envs.argos.datasets.pixmo_count:PixMoCount",
    "eb_alfred": "visenv.envs.embodied.datasets.eb_alfred:EBAlfredTasks",
    "eb_habitat": "visenv.envs.embodied.datasets.eb_habitat:EBHabitatTasks",
}

BASELINE_PROMPTS: dict[str, str] = {
    "arft": "visenv.envs.arft.baselines:PROMPTS",
    "mags": "visenv.envs.mags.baselines:PROMPTS",
    "mags-one-shot": "visenv.envs.mags.baselines:ONE_SHOT",
    "mags-grit": "visenv.envs.mags.baselines:GRIT",
    "embodied": "visenv.envs.embodied.baselines:PROMPTS",
}

MODELS: dict[str, str] = {
    "tiny": "visenv.policies.transformers.tiny:tiny",
}

EXAMINATIONS: dict[str, str] = {
    "model": "visenv.policies.transformers.examination:examine",
}
"""What `visenv doctor` examines beside the installation."""

RECIPES: dict[str, str] = {
    "train": "visenv.algos.experiment.command:train",
    "compare": "visenv.algos.comparison:compare",
}

CURATION: dict[str, str] = {
    "questions": "visenv.curation.questions:Questions",
    "negatives": "visenv.envs.arm.curation:Negatives",
    "dedupe": "visenv.envs.arm.curation:Dedupe",
    "arrange": "visenv.envs.arm.curation:MakePairs",
    "trajectories": "visenv.curation.trajectories:Trajectories",
    "filter": "visenv.curation.filter:Filter",
    "export": "visenv.curation.export:Export",
    "armbench": "visenv.envs.arm.curation:ArmBenchItems",
    "constraints": "visenv.envs.arm.curation:ConstraintItems",
    "argos-draft": "visenv.envs.argos.curation:DraftAnswers",
    "argos-entities": "visenv.envs.argos.curation:FindEntities",
    "argos-point": "visenv.envs.argos.curation:PointToEntities",
    "argos-overlay": "visenv.envs.argos.curation:DrawOverlay",
    "argos-traces": "visenv.envs.argos.curation:Traces",
    "argos-extract": "visenv.envs.argos.curation:ExtractReferences",
    "argos-score": "visenv.envs.argos.curation:ScoreTraces",
    "argos-reformat": "visenv.envs.argos.curation:Reformat",
    "argos-verify": "visenv.envs.argos.curation:Verify",
    "argos-mix": "visenv.envs.argos.curation:Mix",
    "distort": "visenv.envs.arft.coding.curation.distort:Distort",
    "zoom-score": "visenv.envs.mags.curation:RateZoom",
    "clear": "visenv.envs.mags.curation:DropUnclear",
    "stratify": "visenv.envs.mags.curation:Stratify",
    "mags-train": "visenv.envs.mags.curation:MagsTrain",
    "passages": "visenv.envs.arft.datasets.multi_hop:write_passages",  # not a step: writes a corpus
    "writer": "visenv.envs.arm.curation:Writer",  # not a step: the writer of negatives and armbench
}

SUITES: dict[str, str] = {
    "armbench": "visenv.envs.arm.suites:ARMBENCH",
    "arm-visual-tools": "visenv.envs.arm.suites:VISUAL_TOOLS",
    "arm-reasoning": "visenv.envs.arm.suites:REASONING",
    "eb-alfred": "visenv.envs.embodied.suites:EB_ALFRED",
    "eb-alfred-scenes": "visenv.envs.embodied.suites:EB_ALFRED_SCENES",
    "eb-habitat": "visenv.envs.embodied.suites:EB_HABITAT",
    "eb-habitat-scenes": "visenv.envs.embodied.suites:EB_HABITAT_SCENES",
    "libero": "visenv.envs.libero.suites:LIBERO",
}

RECORD_TYPES: dict[str, str] = {
    "QuestionTruth": "visenv.types.ground_truth:QuestionTruth",
    "SceneTruth": "visenv.worlds.scenes.truth:SceneTruth",
    "HRBenchTruth": "visenv.data.hrbench:HRBenchTruth",
    "TextVQATruth": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQATruth",
    "DeepEyesTruth": "visenv.envs.arm.datasets.deepeyes:DeepEyesTruth",
    "VlmEvalTruth": "visenv.envs.arm.datasets.vlmeval_score:VlmEvalTruth",
    "JudgingTruth": "visenv.envs.arm.ground_truth:JudgingTruth",
    "DocumentTruth": "visenv.envs.arm.ground_truth:DocumentTruth",
    "AnswerJudged": "visenv.envs.arm.answers:AnswerJudged",
    "InstructionTruth": "visenv.envs.arm.ground_truth:InstructionTruth",
    "CodingTruth": "visenv.envs.arft.coding.ground_truth:CodingTruth",
    "SearchTruth": "visenv.envs.arft.search.ground_truth:SearchTruth",
    "MagsTruth": "visenv.envs.mags.ground_truth:MagsTruth",
    "TextIgnored": "visenv.envs.mags.env:TextIgnored",
    "Referred": "visenv.verifier.referred:Referred",
    "Selected": "visenv.verifier.referred:Selected",
    "MediaTruth": "visenv.envs.argos.ground_truth:MediaTruth",
    "GroundedTruth": "visenv.envs.argos.ground_truth:GroundedTruth",
    "LiberoTruth": "visenv.envs.libero.ground_truth:LiberoTruth",
    "PublishedTruth": "visenv.envs.embodied.datasets.published:PublishedTruth",
    "HouseTruth": "visenv.envs.embodied.ground_truth:HouseTruth",
    "Goal": "visenv.envs.embodied.world.goals:Goal",
    "Clause": "visenv.envs.embodied.world.goals:Clause",
    "Fact": "visenv.envs.embodied.world.goals:Fact",
    "SumTruth": "visenv.testing.toy:SumTruth",
}
"""Event types and ground-truth types, by the names under which they are saved.

A program may add its own types; a package lists its types in the entry-point group
``visenv.records``.
"""

SCORERS: dict[str, str] = {
    "openai": "visenv.scorers.backends.openai:OpenAIBackend",
    "transformers": "visenv.scorers.backends.transformers:TransformersBackend",
    "encoder": "visenv.scorers.backends.encoder:EncoderBackend",
    "detector": "visenv.scorers.backends.detector:DetectorBackend",
    "segmenter": "visenv.scorers.backends.segmenter:SegmenterBackend",
    "magnifier": "visenv.envs.mags.magnifier.backend:MagnifierBackend",
    "rules": "visenv.scorers.backends.rules:RulesBackend",
    "recorded": "visenv.scorers.backends.recorded:RecordedBackend",
}

FAMILIES: dict[str, str] = {
    "qwen2_5_vl": "visenv.policies.tokens.qwen_vl:qwen_vl",
    "qwen3_vl": "visenv.policies.tokens.qwen_vl:qwen_vl",
}
"""Families of models, by the type of the model in the configuration of a checkpoint.

A package lists its families in the entry-point group ``visenv.families``.
"""

WRAPPERS: dict[str, str] = {
    "NoImage": "visenv.evaluation.controls:NoImage",
    "NoTool": "visenv.evaluation.controls:NoTool",
    "ShuffledResults": "visenv.evaluation.controls:ShuffledResults",
    "NativeActions": "visenv.envs.libero.native:NativeActions",
    "RewardWrapper": "visenv.rewards.wrapper:RewardWrapper",
    "ClipReward": "gymnasium.wrappers.transform_reward:ClipReward",
    "TimeLimit": "gymnasium.wrappers.common:TimeLimit",
    "OrderEnforcing": "gymnasium.wrappers.common:OrderEnforcing",
    "PassiveEnvChecker": "gymnasium.wrappers.common:PassiveEnvChecker",
}
"""Wrappers that the spec of a saved episode may contain.

A package lists its wrappers in the entry-point group ``visenv.wrappers``.
"""

CALLBACKS: dict[str, str] = {}
"""Callbacks of the trainer. visenv has none of its own; users pass ``module:Class``."""

TABLES = {
    "environment": {name: entry.entry_point for name, entry in ENVIRONMENTS.items()},
    "policy": POLICIES,
    "algorithm": ALGORITHMS,
    "callback": CALLBACKS,
    "data set": DATA,
    "baseline prompts": BASELINE_PROMPTS,
    "model": MODELS,
    "model family": FAMILIES,
    "examination": EXAMINATIONS,
    "recipe": RECIPES,
    "curation step": CURATION,
    "scorer": SCORERS,
    "wrapper": WRAPPERS,
    "suite": SUITES,
}


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
    return _import(kind, name, _path_of(kind, name))


def _path_of(kind: str, name: str) -> str:
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
        raise UnknownNameError(kind, name, known_names(kind))
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
        advice = "The name of your own environment is module:Id or module:Class."
        raise UnknownNameError("environment", name, known_names("environment"), advice)
    plugins.import_attribute(plugin.path, plugin.title)
    if name not in gym.registry:  # importing the package may have registered it
        try:
            register(name, plugin.path)
        except gym.error.Error as error:
            raise ConfigurationError(
                f"{plugin.title} has a name that is not an id of Gymnasium, such as "
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
