"""Code (Visual-ARFT, arXiv 2505.14246, §3): the policy writes Python that is really run."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ConfigurationError, ToolError
from visenv.grammar.foreign import neutralized
from visenv.sandbox import (
    INPUT_IMAGE,
    OUTPUT_IMAGE,
    Execution,
    Sandbox,
    SandboxLimits,
    shared_sandbox,
)
from visenv.tools.base import Arguments, Store, Tool, ToolResult
from visenv.tools.crop_box import MOST_ASPECT, is_too_thin
from visenv.types import Image, Part, Sample

_SNIPPETS = (
    "image = cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE)",
    "image = cv2.rotate(image, cv2.ROTATE_180)",
    "image = cv2.convertScaleAbs(image, alpha=1.5, beta=20)",
    "image = cv2.medianBlur(image, 3)",
    "image = image[: image.shape[0] // 2]",
)
_PROGRAM = f"""import cv2

image = cv2.imread("{INPUT_IMAGE}")
{{work}}
cv2.imwrite("{OUTPUT_IMAGE}", image)
"""
_SHORTEST = 200
_STAMP = re.compile(r"^(\[ *[A-Z]+:\d+)@\d+\.\d+\]", re.MULTILINE)
"""OpenCV dates its warnings; without that, one program says the same every time."""


class CodeArguments(Arguments):
    """What the policy writes."""

    code: str = Field(
        description=f"Python. It finds the image at '{INPUT_IMAGE}' and writes the changed one to "
        f"'{OUTPUT_IMAGE}'. cv2, numpy and PIL are there; there is no network."
    )
    image: str | None = Field(
        default=None, description="Name of the image to work on; the latest one by default."
    )


class CodeTool(Tool[CodeArguments]):
    """Run a program on an image of the episode, in a sandbox; show what it prints and writes.

    What a program does wrong is a result, its traceback, and no error: the policy can go on from
    it. Each program has only the image and its own text; nothing is left of the one before.

    Args:
        sandbox: Where programs run; by default the one all environments of this process share.
        limits: Of each program; the sandbox's by default.
        characters: Most characters of text shown; of a longer one, the beginning and the end.

    Raises:
        ConfigurationError: If `characters` leaves no room for an error message.
    """

    name = "python"
    description = (
        "Runs a Python program on an image, with OpenCV, and shows the image it writes and what it "
        "prints, or its traceback. Use it to repair an image or to measure something in it."
    )
    arguments = CodeArguments

    def __init__(
        self,
        *,
        sandbox: Sandbox | None = None,
        limits: SandboxLimits | None = None,
        characters: int = 4000,
    ) -> None:
        if characters < _SHORTEST:
            raise ConfigurationError(f"characters must be at least {_SHORTEST}, got {characters}.")
        self.sandbox = sandbox
        self.limits = limits
        self.characters = characters

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Make sure that programs can be run.

        Raises:
            ConfigurationError: If they cannot be run safely here.
            ServiceError: If what runs them cannot be reached.
        """
        self._sandbox().start()

    @override
    def call(self, arguments: CodeArguments, store: Store) -> ToolResult:
        """Run the program.

        The result's ``detail`` holds ``status`` (see `visenv.sandbox.Status`), ``image``, the name
        of the image it was given, and ``written``, whether it wrote one that was taken.

        Raises:
            ToolError: If there is no such image.
            ServiceError: If no process could be had, beyond retries.
        """
        name, image = _chosen(arguments.image, store)
        images = {INPUT_IMAGE: _lossless(image)}
        execution = self._sandbox().run(arguments.code, images, limits=self.limits, owner=id(self))
        execution = _without_thin_image(execution)
        written = execution.image is not None
        detail = {"status": execution.status, "image": name, "written": written}
        return ToolResult(self._shown(execution), detail)

    @override
    def example(self) -> CodeArguments:
        return CodeArguments(code=_PROGRAM.format(work=_SNIPPETS[0]))

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> CodeArguments:
        """Return one of a few repairs of a random image."""
        names = list(store.images)
        work = _SNIPPETS[int(rng.integers(len(_SNIPPETS)))]
        image = names[int(rng.integers(len(names)))] if names else None
        return CodeArguments(code=_PROGRAM.format(work=work), image=image)

    def _sandbox(self) -> Sandbox:
        return self.sandbox or shared_sandbox()

    def _shown(self, execution: Execution) -> tuple[Part, ...]:
        # Here and not only by `VisEnv`: what is escaped is longer, and the end has to be kept.
        text = neutralized(_STAMP.sub(r"\1]", _without_true(execution).text))
        text = _shortened(text, self.characters)
        if execution.image is not None:
            return (text, execution.image) if text else (execution.image,)
        missing = "" if execution.image_problem else f"No image was written to '{OUTPUT_IMAGE}'."
        return ("\n".join(line for line in (text, missing) if line),)


def _chosen(name: str | None, store: Store) -> tuple[str, Image]:
    if name is not None:
        return name, store.image(name)
    if not store.images:
        raise ToolError("There is no image to work on.")
    latest = next(reversed(store.images))
    return latest, store.images[latest]


def _without_true(execution: Execution) -> Execution:
    """Leave out the value of a last line that writes the image: the image is shown."""
    if execution.image is None or execution.result != "True":
        return execution
    return replace(execution, result="")


def _lossless(image: Image) -> bytes:
    """Return the image as the bytes of a PNG file; readers go by the content, not by the name.

    A JPEG file would add what no repair takes away: a dark image has a few levels only.
    """
    import cv2

    done, file = cv2.imencode(
        ".png", cv2.cvtColor(image.pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 1]
    )
    assert done
    return bytes(file)


def _without_thin_image(execution: Execution) -> Execution:
    """Drop an image with a side too long for models' processors, which would fail on it."""
    if execution.image is None or not is_too_thin(execution.image.size):
        return execution
    width, height = execution.image.size
    problem = f"it is {width}x{height}, and a side can be at most {MOST_ASPECT} times the other"
    return replace(execution, image=None, file=None, image_problem=problem)


def _shortened(text: str, most: int) -> str:
    """Return the beginning and the end: a traceback's last line says the most."""
    if len(text) <= most:
        return text
    gap = "\n…\n"
    first = (most - len(gap)) // 2
    return text[:first] + gap + text[len(text) - (most - len(gap) - first) :]
