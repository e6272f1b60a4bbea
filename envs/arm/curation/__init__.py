"""Curation steps that make training and benchmark data for judges (ARM-Thinker, 3.2 and 4.2).

Each step is a `visenv.curation.step.Step` over rows in JSONL files; `visenv data` runs them.
"""

from .armbench import ArmBench
from .constraints import Constraints
from .duplicates import Dedupe
from .judging import Arrange
from .negatives import Negatives
from .scripted import ScriptedGenerator
from .writer import Writer

__all__ = [
    "ArmBench",
    "Arrange",
    "Constraints",
    "Dedupe",
    "Negatives",
    "ScriptedGenerator",
    "Writer",
]
