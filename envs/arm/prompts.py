"""Writes the prompts of the ARM environments: reworded, with the structure of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from visenv.grammar import ToolCallGrammar
from visenv.tools import Tool
from visenv.types import Image, Message, Part, Sample

from .ground_truth import JudgingTruth, candidate_names
from .tools.crop import CropZoom
from .tools.text_checks import TextCheckTool
from .verdicts import verdicts, write_rating, write_verdict

PromptStyle = Literal["full", "brief"]

ANSWER_NOW = (
    "\nYou have no tool calls left. Give your final judgment now, inside <answer></answer> tags."
)
NO_CALL_LEFT = "No tool call is left in this episode: answer inside <answer></answer> tags."

_TASKS = {
    "single": "Judge whether the response below answers the instruction correctly.",
    "constraint": "Judge whether the response below satisfies the constraint.",
    "rating": "Rate how good the response below is as an answer to the instruction.",
    "several": (
        "Judge which of the responses below answers the instruction best. Being right counts more "
        "than style, length or the order in which they stand. If none of them is right, name the "
        "one that is least wrong."
    ),
}
_GRADED = (
    "The response with the fewest wrong statements is the best; of those with equally few, the one "
    "that leaves out least of what the instruction asks for."
)
"""Texts that compare graded responses (`visenv.envs.arm.world.graded_pairs.responses.Flaws`)."""


def named_images(images: Mapping[str, Image]) -> list[Part]:
    """Return the images, each after its logical name."""
    return [part for name, image in images.items() for part in (f"{name}:\n", image, "\n")]


def opening(
    style: PromptStyle,
    sample: Sample,
    images: Mapping[str, Image],
    document: str,
    grammar: ToolCallGrammar,
    tools: Sequence[Tool[Any]],
    turns: int,
) -> list[Message]:
    """Return the first messages of an episode.

    ``"full"`` explains tools and answer format in a system message, and describes the task in a
    user message. ``"brief"`` contains only the images, the instruction, the responses and the
    constraint, for a model that is so small that it learns the format from examples.

    Args:
        style: ``"full"`` or ``"brief"``.
        sample: The sample to judge.
        images: The shown images, by logical name.
        document: The document's name, or ``""``.
        grammar: Writes the instructions.
        tools: The available tools.
        turns: Number of turns in an episode; the last one must answer.
    """
    shown = named_images(images)
    if style == "brief":
        return [Message("user", (*shown, _brief(sample, document)))]
    system = Message("system", (_role(grammar, tools, turns),))
    return [system, Message("user", (*shown, _task(sample, document, list(images), tools)))]


def _role(grammar: ToolCallGrammar, tools: Sequence[Tool[Any]], turns: int) -> str:
    role, instructions = "You judge responses of AI assistants. ", grammar.instructions(tools)
    if not tools:
        return f"{role}{instructions}"
    calls = "1 tool call" if turns == 2 else f"{turns - 1} tool calls"
    return (
        f"{role}Do not trust a response because it sounds sure: verify what it claims with the "
        f"tools, then judge.\n\n{instructions}\n"
        f"You have {turns} turns: at most {calls}, and the last turn must be your answer. If a "
        "call fails, you are told why; correct the call and try again, or go on without it."
    )


def _task(sample: Sample, document: str, images: Sequence[str], tools: Sequence[Tool[Any]]) -> str:
    truth = sample.truth_as(JudgingTruth)
    names = candidate_names(sample)
    blocks = [_block("instruction", sample.question)]
    blocks += [_block(name, text) for name, text in zip(names, truth.candidates, strict=True)]
    if truth.constraint:
        blocks.append(_block("constraint", truth.constraint))
    return "\n\n".join(
        part
        for part in (
            _asked(sample),
            "\n\n".join(blocks),
            _about(document, images),
            _hint(names, images, tools),
            _form(sample),
        )
        if part
    )


def _asked(sample: Sample) -> str:
    truth, task = sample.truth_as(JudgingTruth), _TASKS[_kind(sample)]
    return f"{task} {_GRADED}" if truth.grades and len(truth.candidates) > 1 else task


def _block(name: str, text: str) -> str:
    return f"<start_of_{name}>\n{text}\n<end_of_{name}>"


def _about(document: str, images: Sequence[str]) -> str:
    if document:
        return (
            f"The instruction is about the document {document!r}. The image {images[0]} is an "
            "overview of all its pages: they are numbered from 1, left to right, then top to "
            "bottom."
        )
    if images:
        return f"The instruction is about {', '.join(images)}."
    return ""


def _hint(names: Sequence[str], images: Sequence[str], tools: Sequence[Tool[Any]]) -> str:
    """Return the names that tools accept: of texts for a check, of images for a zoom."""
    things = list(names) if any(isinstance(tool, TextCheckTool) for tool in tools) else []
    if any(isinstance(tool, CropZoom) and not tool.indexed for tool in tools):
        things += [*images, "those of images that tools return"]
    return f"Names you can give to tools: {', '.join(things)}." if things else ""


def _kind(sample: Sample) -> str:
    truth = sample.truth_as(JudgingTruth)
    if len(truth.candidates) > 1:
        return "several"
    if truth.rating is not None:
        return "rating"
    return "constraint" if truth.constraint else "single"


def _form(sample: Sample) -> str:
    truth = sample.truth_as(JudgingTruth)
    if truth.rating is not None:
        low, high = truth.rating
        return (
            f"End with a whole number from {low} (worst) to {high} (best), in exactly this form: "
            f"<answer>{write_rating(high)}</answer>"
        )
    answers = map(write_verdict, verdicts(len(truth.candidates)))
    forms = " or ".join(f"<answer>{answer}</answer>" for answer in answers)
    return f"End with your judgment in exactly this form: {forms}"


def _brief(sample: Sample, document: str) -> str:
    truth, names = sample.truth_as(JudgingTruth), candidate_names(sample)
    lines = [sample.question]
    if document:
        lines.insert(0, document)
    lines += [f"{name}: {text}" for name, text in zip(names, truth.candidates, strict=True)]
    if truth.constraint:
        lines.append(f"constraint: {truth.constraint}")
    return "\n".join(lines)


def verifying(style: PromptStyle) -> str:
    """Return the oracle's thought before it calls a tool."""
    return " look " if style == "brief" else " I verify this before I judge. "
