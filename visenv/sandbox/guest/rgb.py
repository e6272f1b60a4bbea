"""Loads `visenv.decoding.rgb` from its file, because the guest cannot import visenv.

The server imports this module before the lockdown.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[2] / "decoding" / "rgb.py"


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
