"""The tools of ArftCoding: naming what is wrong, and running programs."""

from .code import CodeArguments, CodeTool
from .steps import (
    LATEST,
    NAMED,
    ProblemArguments,
    ProblemTool,
    ProgramArguments,
    ProgramTool,
)

__all__ = [
    "LATEST",
    "NAMED",
    "CodeArguments",
    "CodeTool",
    "ProblemArguments",
    "ProblemTool",
    "ProgramArguments",
    "ProgramTool",
]
