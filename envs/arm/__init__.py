"""Contains the ARM-Thinker environments: judges that use tools, and plain questions with tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/ArmZoom-v0": EnvEntry(
            "visenv.envs.arm:make_zoom", "judge responses about an image, zooming in (ARM-Thinker)"
        ),
        "visenv/ArmDoc-v0": EnvEntry(
            "visenv.envs.arm:make_doc",
            "judge responses about a document, page by page (ARM-Thinker)",
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
    },
    data={
        "armbench": "visenv.envs.arm.datasets.armbench:ARMBench",
        "vl_rewardbench": "visenv.envs.arm.datasets.vl_rewardbench:VLRewardBench",
        "rewardbench2": "visenv.envs.arm.datasets.rewardbench2:RewardBench2",
        "llava_critic": "visenv.envs.arm.datasets.llava_critic:LLaVACritic",
        "deepeyes": "visenv.envs.arm.datasets.deepeyes:DeepEyes",
        "visual_probe": "visenv.envs.arm.datasets.visual_probe:VisualProbe",
        "mme_realworld": "visenv.envs.arm.datasets.mme_realworld:MMERealWorld",
        "vlmeval": "visenv.envs.arm.datasets.vlmeval:VlmEval",
        "mp_docvqa": "visenv.envs.arm.datasets.mp_docvqa:MPDocVQA",
        "mm_ifeval": "visenv.envs.arm.datasets.mm_ifeval:MMIFEval",
        "mmlongbench": "visenv.envs.arm.datasets.mmlongbench:MMLongBench",
        "pdf": "visenv.envs.arm.datasets.pdf_questions:PdfQuestions",
    },
    records={
        "DeepEyesTruth": "visenv.envs.arm.datasets.deepeyes:DeepEyesTruth",
        "VlmEvalTruth": "visenv.envs.arm.datasets.vlmeval_score:VlmEvalTruth",
        "JudgingTruth": "visenv.envs.arm.ground_truth:JudgingTruth",
        "DocumentTruth": "visenv.envs.arm.ground_truth:DocumentTruth",
        "AnswerJudged": "visenv.envs.arm.answer_judge:AnswerJudged",
        "InstructionTruth": "visenv.envs.arm.ground_truth:InstructionTruth",
    },
    curation={
        "negatives": "visenv.envs.arm.curation:Negatives",
        "dedupe": "visenv.envs.arm.curation:Dedupe",
        "arrange": "visenv.envs.arm.curation:MakePairs",
        "armbench": "visenv.envs.arm.curation:ArmBenchItems",
        "constraints": "visenv.envs.arm.curation:ConstraintItems",
    },
    suites={
        "armbench": "visenv.envs.arm.suites:ARMBENCH",
        "arm-visual-tools": "visenv.envs.arm.suites:VISUAL_TOOLS",
        "arm-reasoning": "visenv.envs.arm.suites:REASONING",
    },
    recipes={
        "arm_if_tiny": "visenv.recipes:arm_if_tiny.toml",
        "arm_thinker": "visenv.recipes:arm_thinker.toml",
        "arm_thinker_tiny": "visenv.recipes:arm_thinker_tiny.toml",
    },
)

export_make(__name__)
