"""Contains the tools of ArftCoding: naming problems, and running programs."""

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
