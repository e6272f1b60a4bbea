"""Contains the curation steps that create data for judges (ARM-Thinker, sections 3.2 and 4.2).

Each step is a `visenv.curation.step.CurationStep` over rows in JSONL files; `visenv data` runs
them.
"""

from .armbench import ArmBenchItems
from .constraints import ConstraintItems
from .duplicates import Dedupe
from .judging import MakePairs
from .negatives import Negatives
from .scripted import ScriptedGenerator

__all__ = [
    "ArmBenchItems",
    "ConstraintItems",
    "Dedupe",
    "MakePairs",
    "Negatives",
    "ScriptedGenerator",
]
