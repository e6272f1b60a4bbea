"""Contains the dialects: EmbodiedBench's two action formats, and EB-Habitat's 70 skills."""

from .alfred import AlfredDialect
from .base import Action, ActionOutcome, Dialect
from .habitat import HabitatDialect, SkillsDialect

DIALECTS: dict[str, type[Dialect]] = {
    "alfred": AlfredDialect,
    "habitat": HabitatDialect,
    "skills": SkillsDialect,
}

__all__ = [
    "DIALECTS",
    "Action",
    "ActionOutcome",
    "AlfredDialect",
    "Dialect",
    "HabitatDialect",
    "SkillsDialect",
]
