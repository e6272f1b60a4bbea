"""Runs Python code that the policy writes (Visual-ARFT, arXiv 2505.14246, §3)."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.cache import SharedCache
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
"""Removes the time from OpenCV's warnings, so that a program always prints the same text."""


class CodeArguments(Arguments):
    """Holds the arguments of `CodeTool`."""

    code: str = Field(
        description=f"Python. It finds the image at '{INPUT_IMAGE}' and writes the changed one to "
        f"'{OUTPUT_IMAGE}'. cv2, numpy and PIL are there; there is no network."
    )
    image: str | None = Field(
        default=None, description="Name of the image to work on; the latest one by default."
    )


class CodeTool(Tool[CodeArguments]):
    """Runs a program on an image of the episode in a sandbox; shows its output and image.

    An error in a program is a result (its traceback), not a tool error, so that the policy can
    continue. Each program has only the image and its own text; programs share no state.

    Args:
        sandbox: The sandbox of the programs; by default the one that this process shares.
        limits: The limits of each program; by default those of the sandbox.
        characters: The maximum length of the shown text; of a longer one, the beginning and the
            end are shown.

    Raises:
        ConfigurationError: If `characters` is too small for an error message.
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
        """Check that programs can run.

        Raises:
            ConfigurationError: If programs cannot run safely on this machine.
            ServiceError: If the sandbox cannot be reached.
        """
        self._sandbox().start()

    @override
    def call(self, arguments: CodeArguments, store: Store) -> ToolResult:
        """Run the program.

        The result's ``detail`` contains ``status`` (see `visenv.sandbox.Status`), the name of the
        input ``image``, and ``written``, whether the program wrote an image that was accepted.

        Raises:
            ToolError: If there is no such image.
            ServiceError: If no process could be started after all retries.
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
        """Return one of a few repairs, for a random image."""
        names = list(store.images)
        work = _SNIPPETS[int(rng.integers(len(_SNIPPETS)))]
        image = names[int(rng.integers(len(names)))] if names else None
        return CodeArguments(code=_PROGRAM.format(work=work), image=image)

    def _sandbox(self) -> Sandbox:
        return self.sandbox or shared_sandbox()

    def _shown(self, execution: Execution) -> tuple[Part, ...]:
        # `VisEnv` shortens, too, but escaping makes the text longer, and the end has to be kept.
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
    """Remove the value of a last line that writes the image, because the image is shown."""
    if execution.image is None or execution.result != "True":
        return execution
    return replace(execution, result="")


_PNG: SharedCache[str, bytes] = SharedCache(64 << 20, len)
"""Keeps 64 MiB of files by the hash of their pixels, as the episodes of a group begin alike."""


def _lossless(image: Image) -> bytes:
    """Return the image as the bytes of a PNG file; readers ignore the extension of the name.

    A JPEG file would add errors that no repair removes: a dark image has only a few levels.
    """
    return _PNG.get(image.sha256, lambda: _encoded(image))


def _encoded(image: Image) -> bytes:
    from visenv.opencv import cv2

    done, file = cv2.imencode(
        ".png", cv2.cvtColor(image.pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_PNG_COMPRESSION, 1]
    )
    assert done
    return bytes(file)


def _without_thin_image(execution: Execution) -> Execution:
    """Drop an image with a side that is too long for the image processors of models."""
    if execution.image is None or not is_too_thin(execution.image.size):
        return execution
    width, height = execution.image.size
    problem = f"it is {width}x{height}, and a side can be at most {MOST_ASPECT} times the other"
    return replace(execution, image=None, file=None, image_problem=problem)


def _shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a text, because a traceback ends with the error."""
    if len(text) <= most:
        return text
    gap = "\n…\n"
    first = (most - len(gap)) // 2
    return text[:first] + gap + text[len(text) - (most - len(gap) - first) :]
