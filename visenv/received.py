"""Decides which names of a received file visenv resolves.

People send each other runs, episodes and indexes. A file names registered objects: the keys of
`visenv.registration`, and the names that installed packages add. ``module:Class``, a program, a
model or a server comes from the person: the command line, a recipe, Python code. Code that makes
objects from the settings in a file runs in a `resolving` block. Code that is about to import, start
or contact something whose name may come from a file calls `require_trust` first. Outside of a
`resolving` block this does nothing, because the name comes from the person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from visenv.errors import UntrustedNameError


class ReceivedNames:
    """Holds the names of one file that are accepted although they are not registered.

    Args:
        file: The description of the file at the start of an error message, for example ``"The
            episode of visenv/ZoomVQA-v0 (seed 0)"``.
        trust: True accepts every name. A collection accepts these objects, by the name
            ``module:qualname`` under which a file contains them.
        named: Texts that the person gave for this call.

    Attributes:
        used: The names that were accepted because of `trust`, in order, without repetitions.
    """

    def __init__(
        self, file: str, trust: bool | Collection[object] = False, named: Collection[str] = ()
    ) -> None:
        self._file = file
        self._trusts_all = trust is True
        self._trusted = set() if isinstance(trust, bool) else {name_of(each) for each in trust}
        self._named = set(named)
        self.used: dict[str, None] = {}

    def require(self, what: str, name: str, texts: Collection[str]) -> None:
        """Raise `UntrustedNameError` unless the name is accepted; see `require_trust`."""
        if texts and self._named.issuperset(texts):
            return
        if not (self._trusts_all or name in self._trusted):
            raise UntrustedNameError(self._file, what, name)
        self.used[name] = None


_current: ContextVar[ReceivedNames | None] = ContextVar("received_names", default=None)


@contextmanager
def resolving(names: ReceivedNames | None) -> Iterator[None]:
    """Restrict names in the block, and in tasks that are started in it, to those of a file.

    Args:
        names: The names, or None for a block in which names come from the person or from code.
    """
    token = _current.set(names)
    try:
        yield
    finally:
        _current.reset(token)


def current_names() -> ReceivedNames | None:
    """Return the names of the innermost `resolving` block around the caller, or None."""
    return _current.get()


def require_trust(what: str, name: str, texts: Collection[str] = ()) -> None:
    """Raise an error if `name` comes from a file that may not choose it.

    Args:
        what: The kind of the name, for the error, for example ``"data set"``.
        name: A name that is not registered: ``module:attribute``, a program, a model or a server.
        texts: Texts of which the name consists, if options of the command line can contain it. The
            name is accepted if the person gave all of them.

    Raises:
        UntrustedNameError: If the name is in a file, and neither the person nor `ReceivedNames`
            accepts it.
    """
    names = current_names()
    if names is not None:
        names.require(what, name, texts)


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value of lists and mappings, at any depth, without keys."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str):
        yield value


def name_of(value: object) -> str:
    """Return the name ``module:qualname`` of a class or a function."""
    return f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
