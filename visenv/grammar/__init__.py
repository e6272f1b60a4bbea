"""Contains the grammars, which read turns and write results: one file for each protocol."""

from visenv.grammar.action_chunk import ActionChunkGrammar
from visenv.grammar.base import Grammar, ParsedTurn, Problem, ToolCall
from visenv.grammar.hermes import HermesGrammar
from visenv.grammar.key_value import KeyValueGrammar
from visenv.grammar.tool_call import ToolCallGrammar
from visenv.grammar.zoom_in_think import ZoomInThinkGrammar

__all__ = [
    "ActionChunkGrammar",
    "Grammar",
    "HermesGrammar",
    "KeyValueGrammar",
    "ParsedTurn",
    "Problem",
    "ToolCall",
    "ToolCallGrammar",
    "ZoomInThinkGrammar",
]
