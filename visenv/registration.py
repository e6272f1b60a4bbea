"""Every name in visenv, in one table, as strings: ids, policies, algorithms, data sets.

Nothing here imports what it names; `load` does, when it is asked for. No other module of the core
reaches the parts.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import gymnasium as gym

from visenv.errors import ConfigurationError, UnknownNameError

NAMESPACE = "visenv"


class EnvEntry(NamedTuple):
    """One environment: the function that makes it, and what it is in a line."""

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
        "visenv.envs.arm:make_if", "judge whether a text keeps to a constraint (ARM-Thinker)"
    ),
    "visenv/ArmPreference-v0": EnvEntry(
        "visenv.envs.arm:make_preference", "judge which response is preferred (ARM-Thinker)"
    ),
    "visenv/ArftCoding-v0": EnvEntry(
        "visenv.envs.arft:make_coding", "repair an image by code, then answer (Visual-ARFT)"
    ),
    "visenv/ArftSearch-v0": EnvEntry(
        "visenv.envs.arft:make_search", "search for what an image does not tell (Visual-ARFT)"
    ),
}

POLICIES: dict[str, str] = {
    "scripted": "visenv.policies.scripted:ScriptedPolicy",
    "oracle": "visenv.policies.oracle:OraclePolicy",
    "random": "visenv.policies.random:RandomPolicy",
    "openai": "visenv.policies.openai:OpenAIPolicy",
    "transformers": "visenv.policies.transformers:TransformersPolicy",
    "vllm": "visenv.policies.vllm:VLLMPolicy",
    "vllm-server": "visenv.policies.vllm:VLLMServerPolicy",
    "direct": "visenv.policies.baselines:DirectPolicy",
    "cot": "visenv.policies.baselines:ChainOfThoughtPolicy",
    "rag": "visenv.policies.baselines:RetrievalPolicy",
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
    "sft": "visenv.algos.sft:SFT",
}

DATA: dict[str, str] = {
    "textvqa": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQA",
    "vstar": "visenv.data.vstar:VStarBench",
    "hrbench": "visenv.data.hrbench:HRBench",
    "armbench": "visenv.envs.arm.datasets.armbench:ARMBench",
    "vl_rewardbench": "visenv.envs.arm.datasets.vl_rewardbench:VLRewardBench",
    "rewardbench2": "visenv.envs.arm.datasets.rewardbench2:RewardBench2",
    "llava_critic": "visenv.envs.arm.datasets.llava_critic:LLaVACritic",
    "deepeyes": "visenv.envs.arm.datasets.deepeyes:DeepEyes",
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
}

BASELINE_PROMPTS: dict[str, str] = {
    "arft": "visenv.envs.arft.baselines:PROMPTS",
}

MODELS: dict[str, str] = {
    "tiny": "visenv.policies.transformers.tiny:tiny",
    "tiny-arm": "visenv.policies.transformers.tiny:tiny_arm",
    "tiny-arft": "visenv.policies.transformers.tiny:tiny_arft",
}

WORDS: dict[str, str] = {
    "zoom": "visenv.envs.zoom_vqa.words:WORDS",
    "arm": "visenv.envs.arm.words:WORDS",
    "arft": "visenv.envs.arft.words:WORDS",
}

RECIPES: dict[str, str] = {
    "warm-up-then-rl": "visenv.algos.recipe:Train",
}

CURATION: dict[str, str] = {
    "questions": "visenv.curation.questions:Questions",
    "negatives": "visenv.envs.arm.curation:Negatives",
    "dedupe": "visenv.envs.arm.curation:Dedupe",
    "arrange": "visenv.envs.arm.curation:Arrange",
    "trajectories": "visenv.curation.trajectories:Trajectories",
    "filter": "visenv.curation.filter:Filter",
    "export": "visenv.curation.export:Export",
    "armbench": "visenv.envs.arm.curation:ArmBench",
    "constraints": "visenv.envs.arm.curation:Constraints",
    "distort": "visenv.envs.arft.coding.curation.distort:Distort",
    "passages": "visenv.envs.arft.datasets.multi_hop:write_passages",  # no step: a corpus to index
    "writer": "visenv.envs.arm.curation:Writer",  # no step: who writes in negatives and armbench
}

RECORD_TYPES: dict[str, str] = {
    "QuestionTruth": "visenv.types.ground_truth:QuestionTruth",
    "SceneTruth": "visenv.worlds.scenes.truth:SceneTruth",
    "HRBenchTruth": "visenv.data.hrbench:HRBenchTruth",
    "TextVQATruth": "visenv.envs.zoom_vqa.datasets.textvqa:TextVQATruth",
    "DeepEyesTruth": "visenv.envs.arm.datasets.deepeyes:DeepEyesTruth",
    "JudgingTruth": "visenv.envs.arm.ground_truth:JudgingTruth",
    "DocumentTruth": "visenv.envs.arm.ground_truth:DocumentTruth",
    "InstructionTruth": "visenv.envs.arm.ground_truth:InstructionTruth",
    "CodingTruth": "visenv.envs.arft.coding.ground_truth:CodingTruth",
    "SearchTruth": "visenv.envs.arft.search.ground_truth:SearchTruth",
    "SumTruth": "visenv.testing.toy:SumTruth",
}
"""Event types and ground-truth types by the name under which they are saved. A program may add its
own; a package names them in the entry-point group ``visenv.records``."""

SCORERS: dict[str, str] = {
    "openai": "visenv.scorers.backends.openai:OpenAIBackend",
    "transformers": "visenv.scorers.backends.transformers:TransformersBackend",
    "encoder": "visenv.scorers.backends.encoder:EncoderBackend",
    "rules": "visenv.scorers.backends.rules:RulesBackend",
    "recorded": "visenv.scorers.backends.recorded:RecordedBackend",
}

TABLES = {
    "environment": {name: entry.entry_point for name, entry in ENVIRONMENTS.items()},
    "policy": POLICIES,
    "algorithm": ALGORITHMS,
    "data set": DATA,
    "baseline prompts": BASELINE_PROMPTS,
    "model": MODELS,
    "vocabulary": WORDS,
    "recipe": RECIPES,
    "curation step": CURATION,
    "scorer": SCORERS,
}


def load(kind: str, name: str) -> Any:
    """The object that `name` stands for.

    Args:
        kind: A key of `TABLES`.
        name: A key of that table, or ``"module:attribute"`` for a user's own.

    Raises:
        UnknownNameError: If the table has no such name; names the nearest.
        ConfigurationError: If what it names cannot be imported (says which extra is missing).
    """
    table = TABLES[kind]
    own = ":" in name and name not in table
    if not own and name not in table:
        raise UnknownNameError(kind, name, table)
    module_name, _, attribute = (name if own else table[name]).partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"The {kind} {name!r} needs the package {error.name!r}, which is not installed. "
            "Install visenv with the extra that holds it, for example visenv[train]."
        ) from error
    except AttributeError as error:
        raise ConfigurationError(f"There is no {attribute!r} in {module_name!r}.") from error


def register_all() -> None:
    """Register every environment with Gymnasium."""
    for env_id, entry in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            register(env_id, entry.entry_point)


def register(env_id: str, entry_point: str, **options: Any) -> None:
    """Register one environment with Gymnasium, with our episode pool for `gym.make_vec`.

    Args:
        env_id: The id for `gym.make`.
        entry_point: ``"module:function"`` that makes the environment, reward included.
        **options: Further arguments of `gym.register`, for example ``max_episode_steps``.
    """
    gym.register(
        env_id,
        entry_point,
        order_enforce=False,  # `VisEnv.step` refuses an episode that was never started
        vector_entry_point=f"visenv.rollout.vector_entry_points:{env_id}",
        **options,
    )
