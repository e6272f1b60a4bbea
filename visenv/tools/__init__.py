"""Defines tools that a policy can call, and the store of named texts and images that they share."""

from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown

__all__ = ["Arguments", "Store", "Tool", "ToolResult", "shown"]
