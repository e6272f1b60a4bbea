"""Creates images with known problems, which must be repaired to answer a question about them.

It replaces the builder of MAT-Coding (Visual-ARFT, arXiv 2505.14246, appendix B), which was not
published, and works on all samples with a question, an image and answers.
"""

from .kinds import KINDS, LABELS, apply
from .plans import PLANS, Problems, schedule, split_of
from .questions import is_readable
from .sources import DistortedRows, DistortedWorld, distorted

__all__ = [
    "KINDS",
    "LABELS",
    "PLANS",
    "DistortedRows",
    "DistortedWorld",
    "Problems",
    "apply",
    "distorted",
    "is_readable",
    "schedule",
    "split_of",
]
