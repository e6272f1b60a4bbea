"""Finds the mutants of a module: small faults that tests should notice.

A mutant is another comparison, operator, constant or return value, or a negated condition.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Kind = Literal["comparison", "arithmetic", "constant", "return value", "negation"]
KINDS: Final[tuple[Kind, ...]] = (
    "comparison",
    "arithmetic",
    "constant",
    "return value",
    "negation",
)

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_OPERATORS: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
    ast.Pow: ("**", "*"),
}


@dataclass(frozen=True)
class Mutant:
    """Describes one fault in one file.

    Attributes:
        path: The file, relative to the root.
        line: The line of the fault, from 1.
        kind: The kind of the fault.
        start: Offset of the replaced text in the file's UTF-8 bytes.
        end: End of the replaced text, in bytes.
        original: The replaced text.
        replacement: The text of the mutant.
    """

    path: str
    line: int
    kind: Kind
    start: int
    end: int
    original: str
    replacement: str

    def apply(self, source: bytes) -> bytes:
        """Return the bytes of the file with the fault."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


class _Change(NamedTuple):
    """Describes a replacement of the bytes from `start` to `end`."""

    kind: Kind
    start: int
    end: int
    replacement: str


def find_mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield all mutants of a file; annotations, docstrings and `TYPE_CHECKING` have none."""
    text = _Text(source)
    for node in _code(ast.parse(source)):
        for kind, start, end, replacement in (*text.operators(node), *text.values(node)):
            line = source.count(b"\n", 0, start) + 1
            original = source[start:end].decode()
            yield Mutant(path, line, kind, start, end, original, replacement)


class _Text:
    """Finds the changes of a node in the bytes of its file."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        lengths = map(len, source.splitlines(keepends=True))
        self._lines = [0, *itertools.accumulate(lengths)]

    def operators(self, node: ast.AST) -> Iterator[_Change]:
        """Yield the changed comparison or arithmetic operator of a node."""
        match node:
            case ast.Compare(left=left, ops=[comparison]):
                yield self._after(left, "comparison", *_COMPARISONS[type(comparison)])
            case ast.BinOp(left=left, op=operator, right=right):
                is_text = any(isinstance(side, ast.JoinedStr) for side in (left, right))
                if type(operator) in _OPERATORS and not is_text:
                    yield self._after(left, "arithmetic", *_OPERATORS[type(operator)])

    def values(self, node: ast.AST) -> Iterator[_Change]:
        """Yield the changed constant, return value or condition of a node."""
        match node:
            case ast.Constant(value=bool() as value):
                yield _Change("constant", *self._span(node), str(not value))
            case ast.Constant(value=int() | float() as value):
                yield _Change("constant", *self._span(node), repr(value + 1))
            case ast.Return(value=ast.expr() as result) if ast.unparse(result) != "None":
                yield _Change("return value", *self._span(result), "None")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield _Change("negation", *self._span(node), f"({self._of(operand)})")
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield _Change("negation", *self._span(test), f"(not ({self._of(test)}))")

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        return self._lines[node.lineno - 1] + node.col_offset, end

    def _of(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _after(self, left: ast.expr, kind: Kind, symbol: str, other: str) -> _Change:
        """Replace the operator that follows its left operand, perhaps after a parenthesis."""
        _, begin = self._span(left)
        found = re.search(rf"(?<!\w){re.escape(symbol)}".encode(), self._source[begin:])
        assert found is not None
        start = begin + found.start()
        return _Change(kind, start, start + len(symbol), other)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotations, f-strings or blocks of `TYPE_CHECKING`."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_params", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _code(child)
