"""Contains the tools of coding: naming problems, and programs that continue from the last image."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ToolError
from visenv.images import QWEN_PIXELS
from visenv.sandbox import Sandbox
from visenv.tools import Arguments, Store, Tool, ToolResult, shown
from visenv.types import Image, Sample

from .. import prompts
from ..world import LABELS, is_readable
from .code import CodeArguments, CodeTool

LATEST = "latest_image"
"""Name in the store of the next program's input image, in full resolution."""

NAMED = "problems"
"""Name in the store of the labels that were named last."""


class ProblemArguments(Arguments):
    """Holds the problems that the policy names."""

    labels: Annotated[list[str], Field(min_length=1, description="What is wrong.")]


class ProblemTool(Tool[ProblemArguments]):
    """Stores the problems that the policy names; its reply does not reveal whether they are right.

    Args:
        brief: Whether the reply is empty.
    """

    name = "problem"
    description = prompts.PROBLEM
    arguments = ProblemArguments

    def __init__(self, *, brief: bool = False) -> None:
        self.brief = brief

    @override
    def call(self, arguments: ProblemArguments, store: Store) -> ToolResult:
        """Store the labels; the result's ``detail`` contains the distinct ``labels``, sorted.

        Raises:
            ToolError: If there is no such label.
        """
        labels = sorted(set(arguments.labels))
        for label in labels:
            if label not in LABELS:
                raise ToolError(
                    f"There is no problem called {shown(label)}. Labels: {', '.join(LABELS)}."
                )
        store.texts[NAMED] = ", ".join(labels)
        text = () if self.brief else (prompts.next_step(labels),)
        return ToolResult(text, {"labels": labels})

    @override
    def example(self) -> ProblemArguments:
        """Return two labels at once."""
        return ProblemArguments(labels=["rotation90", "dark"])

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> ProblemArguments:
        """Return one or two of the labels."""
        count = int(rng.integers(1, 3))
        places = rng.choice(len(LABELS), count, replace=False).tolist()
        return ProblemArguments(labels=[LABELS[place] for place in places])


class ProgramArguments(Arguments):
    """Holds the arguments of `ProgramTool`."""

    code: str = Field(description="Python.")


class ProgramTool(Tool[ProgramArguments]):
    """Runs a program on the image that the last program wrote, stored under `LATEST`.

    Args:
        sandbox: The sandbox of the programs, see `CodeTool`.
        characters: The maximum length of the shown text, see `CodeTool`.
        max_pixels: Maximum number of pixels of a shown image.
    """

    name = "code"
    description = prompts.CODE
    arguments = ProgramArguments

    def __init__(
        self,
        *,
        sandbox: Sandbox | None = None,
        characters: int = 2000,
        max_pixels: int = QWEN_PIXELS,
    ) -> None:
        self._python = CodeTool(sandbox=sandbox, characters=characters)
        self._max_pixels = max_pixels

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Check that programs can run.

        Raises:
            ConfigurationError: If programs cannot run safely on this machine.
            ServiceError: If the sandbox cannot be reached.
        """
        self._python.reset(sample, store)
        self._sample = sample

    @override
    def call(self, arguments: ProgramArguments, store: Store) -> ToolResult:
        """Run the program.

        The result's ``detail`` is that of `CodeTool`; for a procedural sample, it also contains
        ``readable``, whether the answer can be read in the image that the program wrote.

        Raises:
            ServiceError: If no process could be started after all retries.
        """
        return self.run_program(arguments.code, store)

    def run_program(self, code: str, store: Store) -> ToolResult:
        """Run a program, and store the image that it writes as the input of the next one."""
        result = self._python.call(CodeArguments(code=code, image=LATEST), store)
        written = next((part for part in result.parts if isinstance(part, Image)), None)
        if written is not None:
            store.images[LATEST] = written
        readable = is_readable(self._sample, written, self._max_pixels)
        if readable is None:
            return result
        return result._replace(detail={**result.detail, "readable": readable})

    @override
    def example(self) -> ProgramArguments:
        """Return a change of brightness, because a rotation could be read as a hint."""
        return ProgramArguments(code=prompts.EXAMPLE)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> ProgramArguments:
        """Return one of a few repairs."""
        return ProgramArguments(code=self._python.random_arguments(rng, Store()).code)
