"""Curation: making training and benchmark data for judges (ARM-Thinker, sections 3.2 and 4.2).

Each step is a `visenv.data.step.Step` over rows in JSONL files; `visenv data` runs them.
"""

from .armbench import ArmBench
from .constraints import Constraints
from .duplicates import Dedupe
from .export import Export
from .filter import Filter
from .judging import Arrange
from .negatives import Negatives
from .questions import Questions
from .scripted import ScriptedGenerator
from .trajectories import Trajectories
from .writer import Writer

__all__ = [
    "ArmBench",
    "Arrange",
    "Constraints",
    "Dedupe",
    "Export",
    "Filter",
    "Negatives",
    "Questions",
    "ScriptedGenerator",
    "Trajectories",
    "Writer",
]
