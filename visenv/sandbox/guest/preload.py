"""Imports packages once, in the server, so that programs do not wait for imports.

The server imports this module before the lockdown.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .syscalls import names

_FILE = Path(__file__).parents[2] / "decoding" / "rgb.py"

# Modules that programs for images often import, besides the packages to load.
_STANDARD = names("""
    base64 collections copy csv datetime fractions functools glob hashlib io itertools json math
    operator os pathlib random re shutil statistics string struct sys tempfile textwrap time
    traceback typing warnings zlib
""")

_PARTS = {
    "numpy": names("numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random"),
    "PIL": names("""
        PIL.Image PIL.ImageChops PIL.ImageColor PIL.ImageDraw PIL.ImageEnhance PIL.ImageFilter
        PIL.ImageFont PIL.ImageOps PIL.ImageStat
    """),
}


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("guest_rgb", _FILE)
    if spec is None or spec.loader is None:
        raise ImportError(f"There is no file {_FILE}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_rules = _load()

to_rgb = _rules.to_rgb

upright_size = _rules.upright_size

PixelError: type[ValueError] = _rules.PixelError


def load(packages: Sequence[str]) -> None:
    """Import packages and the standard library, and trigger their first-use initialization.

    Raises:
        ImportError: If there is no such package.
    """
    parts = (part for package in packages for part in _PARTS.get(package, ()))
    for name in (*packages, *parts, *_STANDARD):
        importlib.import_module(name)
    modules = sys.modules
    if "cv2" in modules:
        modules["cv2"].setNumThreads(1)
    if "PIL.Image" in modules:
        modules["PIL.Image"].init()
    if "numpy.random" in modules:
        modules["numpy.random"].seed(0)  # the same state for every program
    gc.collect()
    gc.freeze()  # garbage collection in a cell would write to and copy these pages
    gc.disable()
