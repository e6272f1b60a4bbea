"""Images with known problems, to be repaired before a question about them can be answered.

The builder of MAT-Coding (Visual-ARFT, arXiv 2505.14246, appendix B), whose own was not published:
from any samples with a question, an image and answers.
"""

from .kinds import KINDS, LABELS, apply
from .plans import PLANS, Problems, schedule, split_of
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
    "schedule",
    "split_of",
]
