"""Steps that make training data of Argos (section 4, appendix C).

They run in this order, each on the rows of the one before::

    Draft, FindEntities, Point, Overlay    what there is to point to, drawn on the images
    Traces, Extract, Score                 rollouts of a teacher, read and scored
    Verify, Reformat, Mix                  the best of each sample, in the form of a turn
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
