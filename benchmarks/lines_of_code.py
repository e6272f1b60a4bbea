"""Counts the lines of Python code of a revision and of the working tree, for each package.

A line counts if it contains code: blank lines, comments and docstrings (any statement that is only
a string) do not count. The files are those in git, without ignored ones; the links inside
``visenv/`` are not followed. Run it with::

    python benchmarks/lines_of_code.py --before 29f5df9
"""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import tyro

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = "tests"

_NO_CODE: Final = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING),
        *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
    }
)


def count_code(source: str) -> int:
    """Return the number of lines that contain code.

    Raises:
        SyntaxError: If the source is not valid Python.
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines.difference_update(range(first, last + 1))
    return len(lines)


def package_of(path: str) -> str:
    """Return the folder by which a file is counted, at most two levels deep: ``visenv/data``."""
    return "/".join(path.split("/")[:-1][:2]) or "(root)"


def files_of(revision: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each Python file of a git revision."""
    archive = _git("archive", "--format=tar", revision)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened.getmembers():
            file = opened.extractfile(member) if member.isfile() else None
            if file is not None and member.name.endswith(".py"):
                yield member.name, file.read().decode()


def files_here() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each Python file of the working tree."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py").decode()
    for name in sorted(set(listed.split("\0")) - {""}):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            yield name, path.read_text()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def count(files: Iterator[tuple[str, str]]) -> Counter[str]:
    """Return the lines of code of each package."""
    lines: Counter[str] = Counter()
    for path, source in files:
        lines[package_of(path)] += count_code(source)
    return lines


def report(before: Counter[str], now: Counter[str], revision: str) -> str:
    """Return a table with a row for each package, and sums with the tests apart."""
    names = sorted(before.keys() | now.keys())
    tests = [name for name in names if name.split("/")[0] == TESTS]
    library = [
        name for name in names if name.split("/")[0] in ("visenv", "envs", "policies", "algos")
    ]
    others = [name for name in names if name not in (*tests, *library)]
    rows = [(name, [name]) for name in (*library, *others)]
    rows += [("visenv, envs, policies, algos", library), ("all but tests", [*library, *others])]
    rows += [("tests", tests)]
    lines = [
        f"| {'lines of code':<30} | {revision:>8} |     here | change |",
        "|---|---:|---:|---:|",
    ]
    for title, packages in rows:
        old, new = (sum(counts[name] for name in packages) for counts in (before, now))
        lines.append(f"| {title:<30} | {old:>8,} | {new:>8,} | {new - old:>+6,} |")
    return "\n".join(lines)


def main(before: str = "HEAD") -> None:
    """Print the table.

    Args:
        before: The revision to compare with the working tree.
    """
    print(report(count(files_of(before)), count(files_here()), before[:8]))


if __name__ == "__main__":
    tyro.cli(main)
