"""Finds uses of private names of other packages in the source of the library."""

from __future__ import annotations

import ast
import builtins
import concurrent.futures
import importlib
import logging
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from visenv.private_names import TESTED_VERSIONS, PrivateName

ROOT: Final = Path(__file__).parent.parent
FOLDERS: Final = ("visenv", "envs", "policies", "algos")

PUBLIC_MODULES: Final = frozenset(
    {
        *("accelerate", "accelerate.utils", "deepspeed", "transformers", "trl", "vllm"),
        *("torch", "torch.distributed", "torch.nn", "torch.nn.functional", "torch.nn.utils.rnn"),
        *("torch.nn.attention.bias", "torch.utils.tensorboard", "vllm.sampling_params"),
        # Names that the package itself exports, but in a way that mypy does not see.
        *("transformers.utils.import_utils", "trl.trainer.grpo_config", "trl.trainer.grpo_trainer"),
    }
)
"""Modules whose names are documented."""

SIMULATOR_FOLDERS: Final = frozenset({"simulator", "habitat"})
"""Folders of code that runs in the interpreter of a simulator.

This code checks the versions of its packages when it starts (`SetupError`); the packages offer
some needed functions only under private names.
"""

ENGINE_PACKAGES: Final = frozenset({"deepspeed", "vllm"})
ENGINE_FILES: Final = frozenset({"policies/vllm/worker.py"})
"""Files that hold objects of an engine, in addition to files that import from `ENGINE_PACKAGES`."""

DOCUMENTED: Final = frozenset(
    {
        # vLLM: SamplingParams, RequestOutput, LoRARequest.
        *("FINAL_ONLY", "extra_args", "outputs", "prompt_token_ids", "request_id", "lora_int_id"),
        # accelerate, DeepSpeed and torch.distributed.
        *("Init", "initialize", "MIN"),
        *("GatheredParameters", "deepspeed_plugin", "free_memory"),
        *("param_groups", "zero"),
        # urllib, numpy.random, Pillow, hashlib, io.
        *("hostname", "port", "get_state", "set_state", "fromarray", "hexdigest", "getvalue"),
    }
)
"""Documented attributes that the files with an engine use."""

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

_ELSEWHERE: Final = frozenset({"_replace", "_asdict", "_fields", "_exit"})
"""Names with an underscore that Python documents."""


class Use(NamedTuple):
    """Describes a use of a name: ``module:name`` where it is imported, else an attribute."""

    file: str
    line: int
    name: str


def unlisted(names: Iterable[PrivateName], folders: Sequence[str] = FOLDERS) -> list[Use]:
    """Return the uses of private names in the library that are not among `names`."""
    paths = [name.path for name in names]
    attributes = {path.rpartition(":")[2].rpartition(".")[2] for path in paths}
    uses = _uses(tuple(folders))
    listed = {use.name for use in uses if any(_covers(path, use.name) for path in paths)}
    return [use for use in uses if use.name not in attributes | listed]


@cache
def _uses(folders: tuple[str, ...]) -> list[Use]:
    """Return all uses of private names, of which the imports take the longest."""
    trees = {
        file.relative_to(ROOT).as_posix(): ast.parse(file.read_text())
        for folder in folders
        for file in sorted((ROOT / folder).rglob("*.py"))
        if file.name != "private_names.py" and file.parent.name not in SIMULATOR_FOLDERS
    }
    own = {name for tree in trees.values() for name in definitions(tree)}
    return [
        use
        for file, tree in trees.items()
        for finder in (imports, private_attributes, partial(engine_attributes, own=own))
        for use in finder(file, tree)
    ]


@cache
def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return a tree and all nodes below it."""
    return list(ast.walk(tree))


def _covers(path: str, name: str) -> bool:
    """Return whether a listed path is an imported name, or something inside it."""
    return f"{path}.".replace(":", ".").startswith(f"{name}.".replace(":", "."))


def definitions(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, classes, fields and attributes that a file defines."""
    for node in _nodes(tree):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id
                    elif isinstance(part, ast.Attribute) and _is_own(part.value):
                        yield part.attr


def _is_own(receiver: ast.AST) -> bool:
    """Return whether an expression is ``self``, ``cls`` or ``super()``."""
    match receiver:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super"), args=[]):
            return True
    return False


def imports(file: str, tree: ast.AST) -> Iterator[Use]:
    """Yield imports of modules that are not public, also of modules that are named in strings."""
    package = re.compile(rf"({'|'.join(TESTED_VERSIONS)})(\.\w+)*")
    for node in _nodes(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names if each.name not in PUBLIC_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            public = node.module in PUBLIC_MODULES
            names = [
                f"{node.module}:{each.name}"
                for each in node.names
                if not public or each.name.startswith("_")
                if f"{node.module}.{each.name}" not in PUBLIC_MODULES
            ]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            outer, dot, _ = node.value.rpartition(".")
            names = [node.value] if dot and outer not in PUBLIC_MODULES else []
        yield from (
            Use(file, getattr(node, "lineno", 0), name)
            for name in names
            if package.fullmatch(name.partition(":")[0])
        )


def private_attributes(file: str, tree: ast.AST) -> Iterator[Use]:
    """Yield attributes with an underscore that the file does not define itself.

    These include names in strings (for `getattr`), and names that subclasses of classes of other
    packages override or call.
    """
    own = {*definitions(tree), *_ELSEWHERE}
    imported = bool(_watched(tree))
    pieces = {id(part) for node in _nodes(tree) for part in getattr(node, "values", ())}
    for node in _nodes(tree):
        name: Any = None
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            name = node.attr
        elif isinstance(node, ast.Constant) and imported and id(node) not in pieces:
            name = node.value
        elif isinstance(node, ast.ClassDef):
            yield from _inherited(file, tree, node)
        if _is_private(name) and name not in own:
            yield Use(file, getattr(node, "lineno", 0), name)


def _is_private(name: Any) -> bool:
    return isinstance(name, str) and re.fullmatch(r"_[A-Za-z]\w*", name) is not None


@cache
def _watched(tree: ast.AST) -> list[tuple[str, str, str]]:
    """Return the imports of a file from the watched packages: module, name there, name here."""
    found: list[tuple[str, str, str]] = []
    for node in _nodes(tree):
        names: list[tuple[str, str, str]] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [(node.module, name.name, name.asname or name.name) for name in node.names]
        elif isinstance(node, ast.Import):
            names = [(name.name, "", name.asname or name.name) for name in node.names]
        found += [name for name in names if name[0].partition(".")[0] in TESTED_VERSIONS]
    return found


def _inherited(file: str, tree: ast.AST, defined: ast.ClassDef) -> Iterator[Use]:
    """Yield names of a base class of another package that a class overrides or uses."""
    sources = {here: (module, name) for module, name, here in _watched(tree) if name}
    bases = [base.id for base in defined.bases if isinstance(base, ast.Name)]
    for module, name in (sources[base] for base in bases if base in sources):
        base = getattr(_imported(module), name, None)
        overridden = {each.name for each in defined.body if isinstance(each, _FUNCTIONS)}
        called = {each.attr for each in ast.walk(defined) if isinstance(each, ast.Attribute)}
        used = {each for each in called | overridden if _is_private(each)}
        if module not in PUBLIC_MODULES:
            used |= {each for each in overridden if not each.startswith("__")}
        yield from (Use(file, defined.lineno, each) for each in used if hasattr(base, each))


def _imported(module: str) -> Any:
    with suppress(ImportError):  # verl has its own environment, in which this check runs separately
        return importlib.import_module(module)
    return None


def engine_attributes(file: str, tree: ast.AST, own: Iterable[str]) -> Iterator[Use]:
    """Yield attributes in a file with an engine that can only belong to the engine."""
    packages = {module.partition(".")[0] for module, _, _ in _watched(tree)}
    if not packages & ENGINE_PACKAGES and file not in ENGINE_FILES:
        return
    known = {*own, *DOCUMENTED, *_of_imports(tree)}
    for node in _nodes(tree):
        name = node.attr if isinstance(node, ast.Attribute) else ""
        match node:
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, written, *_]):
                name = str(written.value) if isinstance(written, ast.Constant) else ""
        if name and name not in known:
            yield Use(file, getattr(node, "lineno", 0), name)


def _of_imports(tree: ast.AST) -> set[str]:
    """Return the attributes of built-in and PyTorch types and of imports other than engines."""
    import torch

    holders: list[Any] = [value for value in vars(builtins).values() if isinstance(value, type)]
    holders += [torch, torch.Tensor, torch.nn.Module, torch.nn, torch.cuda, torch.random]
    holders += [
        torch.optim.AdamW,
        torch.distributed,
        torch.finfo(torch.float32),
        torch.device("cpu"),
    ]
    holders += [concurrent.futures.Future, logging.getLogger(), socket.socket]
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            holders += [importlib.import_module(each.name) for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = importlib.import_module(node.module)
            holders += [getattr(module, each.name, None) for each in node.names]
    return {name for each in holders if _package(each) not in ENGINE_PACKAGES for name in dir(each)}


def _package(holder: Any) -> str:
    module = getattr(holder, "__module__", None) or getattr(holder, "__name__", "")
    return str(module).partition(".")[0]
