"""Implements ArftCoding as the public code evaluates it: the harness crops for the model."""

from __future__ import annotations

from typing_extensions import override

from visenv.tools import Store, ToolResult
from visenv.types import Image, Sample, ToolCalled

from ..compat import RebuiltArftPrompt, with_box
from . import prompts
from .env import ArftCoding
from .ground_truth import CodingTruth
from .tools import LATEST, NAMED, ProgramArguments, ProgramTool


class CroppingProgramTool(ProgramTool):
    """Replaces slices in a program by the sample's box, after the policy has named a crop."""

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Store the box of the sample; raises the errors of `ProgramTool`."""
        super().reset(sample, store)
        self._box = sample.truth_as(CodingTruth).box

    @override
    def call(self, arguments: ProgramArguments, store: Store) -> ToolResult:
        """Run the program with its slices replaced by the box."""
        code = arguments.code
        if self._box is not None and store.texts.get(NAMED, "").startswith("crop"):
            code = with_box(code, self._box, store.images[LATEST].size)
        return self.run_program(code, store)


class PublishedCoding(RebuiltArftPrompt, ArftCoding):
    """Implements `ArftCoding` with ``compat="arft"``.

    The policy does not see why a program failed. The harness cuts out a crop, from the box in
    the question.
    """

    @override
    def make_program_tool(self) -> ProgramTool:
        """Return a tool that also replaces slices by the box."""
        return CroppingProgramTool(
            characters=self.preset.tool_characters, max_pixels=self.preset.image_pixels
        )

    @override
    def current_images(self) -> list[Image]:
        """Return the image that was written last."""
        return [self.store.images[LATEST]]

    @override
    def question(self) -> str:
        """Return the question with its box."""
        return prompts.with_region(self.sample.question, self.truth.box)

    @override
    def comment(self, call: ToolCalled) -> str:
        """Return the next instruction after problems were named, and ``""`` after a program."""
        if call.tool != "problem" or self.is_brief:
            return ""
        return f"\n<tips> {prompts.next_step(call.detail['labels'])} </tips>"
