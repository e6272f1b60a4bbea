"""Grammars: how a policy's text is read and how results are written, one file per protocol."""

from visenv.grammar.action_chunk import ActionChunkGrammar
from visenv.grammar.base import Grammar, ParsedTurn, Problem, ToolCall
from visenv.grammar.key_value import KeyValueGrammar
from visenv.grammar.tool_call import ToolCallGrammar
from visenv.grammar.zoom_in_think import ZoomInThinkGrammar

__all__ = [
    "ActionChunkGrammar",
    "Grammar",
    "KeyValueGrammar",
    "ParsedTurn",
    "Problem",
    "ToolCall",
    "ToolCallGrammar",
    "ZoomInThinkGrammar",
]
