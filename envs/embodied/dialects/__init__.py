"""The dialects: EmbodiedBench's two ways of writing actions."""

from .alfred import AlfredDialect
from .base import Action, Dialect, Outcome
from .habitat import HabitatDialect

DIALECTS: dict[str, type[Dialect]] = {"alfred": AlfredDialect, "habitat": HabitatDialect}

__all__ = ["DIALECTS", "Action", "AlfredDialect", "Dialect", "HabitatDialect", "Outcome"]
