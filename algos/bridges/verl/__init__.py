"""Connects visenv to verl by an agent loop that plays episodes with verl's own servers.

The loop is `visenv.algos.bridges.verl.loop.VisenvAgentLoop`. Name it in a configuration file of
verl, such as `agent_loop.yaml`. The functions of this package do not import verl.
"""

from .formats import rows, to_verl

__all__ = ["rows", "to_verl"]
