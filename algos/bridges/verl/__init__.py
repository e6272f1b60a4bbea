"""visenv inside verl: an agent loop that plays our episodes through verl's own servers.

The loop is `visenv.algos.bridges.verl.loop.VisenvAgentLoop`, named in a file that verl reads
(`agent_loop.yaml` is one); what is exported here needs no verl.
"""

from .export import to_verl
from .rows import rows

__all__ = ["rows", "to_verl"]
