"""Steps that make training data of Argos (section 4, appendix C).

They run in this order, each on the rows of the one before::

    DraftAnswers, FindEntities, PointToEntities, DrawOverlay   what there is to point to, drawn
    Traces, ExtractReferences, ScoreTraces                     rollouts of a teacher, scored
    Verify, Reformat, Mix                                      the best of each sample, as a turn
"""

from .draft import DraftAnswers
from .entities import FindEntities
from .extraction import ExtractReferences
from .mix import Mix
from .overlay import DrawOverlay
from .pointing import PointToEntities
from .reformat import Reformat
from .score import ScoreTraces
from .scripted import ScriptedTeacher
from .traces import Traces
from .verify import Verify

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
