"""Contains the steps that create training data for Argos (section 4, appendix C).

They run in this order, each on the rows of the previous one::

    DraftAnswers, FindEntities, PointToEntities, DrawOverlay   entities with points, drawn
    Traces, ExtractReferences, ScoreTraces                     rollouts of a teacher, scored
    Verify, Reformat, Mix                                      the best rollout of each sample
"""

from .draft import DraftAnswers
from .entities import FindEntities
from .extraction import ExtractReferences
from .pointing import DrawOverlay, PointToEntities
from .reformat import Reformat
from .scripted import ScriptedTeacher
from .traces import Traces
from .verify import Mix, ScoreTraces, Verify

__all__ = [
    "DraftAnswers",
    "DrawOverlay",
    "ExtractReferences",
    "FindEntities",
    "Mix",
    "PointToEntities",
    "Reformat",
    "ScoreTraces",
    "ScriptedTeacher",
    "Traces",
    "Verify",
]
