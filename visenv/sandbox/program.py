"""Defines a program for a backend, and checks it."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field

from visenv.errors import ConfigurationError
from visenv.sandbox.handoff import SharedImage
from visenv.sandbox.limits import SandboxLimits
from visenv.types import Image

INPUT_IMAGE = "path_to_input_image.jpg"
"""Path of a program's input image (Visual-ARFT, arXiv 2505.14246, figure 6)."""

OUTPUT_IMAGE = "path_to_output_image.jpg"
"""Path of its output image."""

_MOST_IMAGES = 16
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Program:
    """Holds a program, its inputs and its limits.

    Attributes:
        code: Python code.
        images: Images by file name, in the working directory, or by variable name. A variable
            contains the pixels, uint8 ``[height, width, 3]`` RGB; writing to it changes the
            program's own copy. Bytes are written to a file without changes, and need a file name.
        output: File name of the output image.
        limits: The limits of the program.

    Raises:
        ConfigurationError: If a name is neither a file name nor a variable name, or there are more
            than 16 images.
    """

    code: str
    images: Mapping[str, Image | SharedImage | bytes] = field(default_factory=dict)
    output: str = OUTPUT_IMAGE
    limits: SandboxLimits = field(default_factory=SandboxLimits)

    def __post_init__(self) -> None:
        if len(self.images) > _MOST_IMAGES:
            raise ConfigurationError(
                f"At most {_MOST_IMAGES} images can be passed, got {len(self.images)}."
            )
        for name, image in self.images.items():
            if not _is_file(name) and (not is_variable(name) or isinstance(image, bytes)):
                raise ConfigurationError(
                    f"An image needs a file name with an extension or the name of a variable, "
                    f"bytes need a file name; got {name!r}."
                )
        if not _is_file(self.output) or self.output in self.images:
            raise ConfigurationError(
                f"The output needs a file name with an extension, not that of an input; "
                f"got {self.output!r}."
            )

    def refusal(self) -> str:
        """Return the reason why the program must not be run, for its author.

        ``""`` if it may run.
        """
        limits = self.limits
        size = len(self.code.encode("utf-8", "surrogatepass"))
        if size > limits.code_bytes:
            return f"The code has {size:,} bytes; at most {limits.code_bytes:,} are run."
        for name, image in self.images.items():
            if isinstance(image, bytes):
                continue
            width, height = image.size
            if width * height > limits.image_pixels:
                most = f"at most {limits.image_pixels:,} pixels are passed"
                return f"{name} is {width}x{height} = {width * height:,} pixels; {most}."
        return ""


def is_variable(name: str) -> bool:
    """Return whether an image of that name becomes a variable; others become files."""
    return name.isidentifier() and not keyword.iskeyword(name) and len(name) <= _LONGEST_NAME


def _is_file(name: str) -> bool:
    plain = len(name) <= _LONGEST_NAME and name.isascii() and name.isprintable()
    return plain and "/" not in name and "." in name.strip(".")
