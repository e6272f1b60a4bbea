"""Grammars: how a policy's text is read and how results are written, one file per protocol."""

from visenv.grammar.base import Call, Grammar, ParsedTurn, Problem
from visenv.grammar.key_value import KeyValueGrammar
from visenv.grammar.tool_call import ToolCallGrammar

__all__ = ["Call", "Grammar", "KeyValueGrammar", "ParsedTurn", "Problem", "ToolCallGrammar"]
