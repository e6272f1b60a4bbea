"""Where samples come from: a list that can be indexed, or a world that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from visenv.errors import ConfigurationError
from visenv.types import Sample

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@runtime_checkable
class IndexedSource(Protocol):
    """A finite set of samples."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, index: int) -> Sample:
        """The sample at `index`, 0 to ``len(self) - 1``.

        Raises:
            DataError: If the row cannot be read.
        """
        ...


@runtime_checkable
class ProceduralSource(Protocol):
    """An unbounded world with exact ground truth."""

    def sample(self, rng: np.random.Generator) -> Sample:
        """Make a sample; a function of the generator's state alone."""
        ...


Source = IndexedSource | ProceduralSource


def is_indexed(source: Source) -> TypeIs[IndexedSource]:
    """Whether the source is finite; `isinstance` of a protocol says the same, 50 times slower."""
    return hasattr(source, "__getitem__")


def draw(source: Source, rng: np.random.Generator, options: Mapping[str, Any]) -> Sample:
    """The sample that `options` name (``"sample"`` or ``"index"``), otherwise one that `rng` picks.

    Raises:
        ConfigurationError: If the option does not fit the source.
        DataError: If the row cannot be read.
    """
    if options:
        return _named(source, options)
    if is_indexed(source):
        return source[int(rng.integers(len(source)))]
    return source.sample(rng)


def _named(source: Source, options: Mapping[str, Any]) -> Sample:
    unknown = set(options) - {"sample", "index"}
    if unknown:
        raise ConfigurationError(
            f"reset() options are 'sample' or 'index', got {sorted(map(str, unknown))}."
        )
    if "sample" in options:
        given = options["sample"]
        if not isinstance(given, Sample):
            raise ConfigurationError(f"options['sample'] must be a Sample, got {given!r}.")
        return given
    index = options["index"]
    if not is_indexed(source):
        raise ConfigurationError(
            "options['index'] needs data with a length; this source is procedural: pass a seed."
        )
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(source):
        raise ConfigurationError(
            f"options['index'] must be an integer from 0 to {len(source) - 1}, got {index!r}."
        )
    return source[index]
