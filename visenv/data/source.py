"""Defines sources of samples: a list with an index, or a world that generates samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from visenv.errors import ConfigurationError, DataError
from visenv.presets import check_count
from visenv.types import Sample

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@runtime_checkable
class IndexedSource(Protocol):
    """Defines a finite set of samples."""

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def __getitem__(self, index: int) -> Sample:
        """Return the sample at `index`, 0 to ``len(self) - 1``.

        Raises:
            DataError: If the row cannot be read.
        """
        ...


@runtime_checkable
class ProceduralSource(Protocol):
    """Defines an unbounded procedural world with exact ground truth."""

    def sample(self, rng: np.random.Generator) -> Sample:
        """Generate a sample, which depends only on the generator's state."""
        ...


Source = IndexedSource | ProceduralSource
"""A source of samples.

A class attribute ``ground_truth`` declares the type of `Sample.ground_truth` of all its samples, so
that an environment can check it. A source without the attribute is checked sample by sample.

A class attribute ``world_version`` counts the versions of a procedural world, see `world_version`.
"""


def is_indexed(source: Source) -> TypeIs[IndexedSource]:
    """Return whether the source is finite; `isinstance` with a protocol is 50 times slower."""
    return hasattr(source, "__getitem__")


def world_version(source: object) -> int:
    """Return the version of a source's world, at least 1; 1 if the source does not declare one.

    A world gets the next version in its class attribute ``world_version`` when equal seeds no
    longer give equal samples, or when the events of an episode get other contents. Saved episodes
    hold the version, and rescoring refuses the episodes of another one.
    """
    return int(getattr(source, "world_version", 1))


def check_source(source: object) -> None:
    """Check that an object is a source.

    Raises:
        ConfigurationError: If it is not.
    """
    is_source = hasattr(source, "__getitem__") or hasattr(source, "sample")
    if isinstance(source, list | tuple):
        is_source = len(source) > 0 and all(isinstance(each, Sample) for each in source)
    if not is_source or isinstance(source, str | bytes | Mapping):
        raise ConfigurationError(
            "data must be the name of a data set, such as 'rows:my.jsonl', a list of samples, or "
            f"a source of samples (visenv.data.source), got {source!r:.80}."
        )


def check_declared_truth(source: object, accepted: tuple[type, ...], reader: str) -> None:
    """Check that the type of ground truth that a source declares is accepted by its reader.

    Args:
        source: A source; a source that declares no type passes the check.
        accepted: The accepted types, including their subclasses; if empty, any type is accepted.
        reader: The name of the reader, for the error.

    Raises:
        ConfigurationError: If the declared type is not accepted; names both.
    """
    declared = getattr(source, "ground_truth", None)
    if declared is None or not accepted:
        return
    if not isinstance(declared, type):
        raise ConfigurationError(
            f"The attribute ground_truth of {type(source).__name__} must be a type, got "
            f"{declared!r:.80}."
        )
    if not issubclass(declared, accepted):
        raise _unfit(type(source).__name__, declared, accepted, reader)


def check_sample(sample: object, source: object) -> None:
    """Check that a source returned a sample.

    Raises:
        ConfigurationError: If it returned something else.
    """
    if not isinstance(sample, Sample):
        raise ConfigurationError(
            f"The data source {type(source).__name__} must return Sample objects "
            f"(visenv.types.Sample), got {sample!r:.80}."
        )


def check_truth(sample: Sample, accepted: tuple[type, ...], reader: str) -> None:
    """Check that the ground truth of a sample is of a type that its reader accepts.

    Args:
        sample: A sample.
        accepted: The accepted types, including their subclasses; if empty, any type is accepted.
        reader: The name of the reader, for the error.

    Raises:
        ConfigurationError: If its type is not accepted; names both.
    """
    if accepted and not isinstance(sample.ground_truth, accepted):
        raise _unfit(f"the sample {sample.id!r}", type(sample.ground_truth), accepted, reader)


def _unfit(giver: str, given: type, accepted: tuple[type, ...], reader: str) -> ConfigurationError:
    names = " or ".join(map(_name, accepted))
    return ConfigurationError(
        f"{reader} needs samples with the ground truth {names}, but {giver} has {_name(given)}."
    )


def _name(truth: type) -> str:
    return "none" if truth is NoneType else truth.__name__


def require_no_images(sample: Sample, task: str) -> None:
    """Check that a sample of a simulator has no images, because they would not be shown.

    Raises:
        DataError: If it has images.
    """
    if sample.images:
        raise DataError(
            f"Sample {sample.id!r} has {len(sample.images)} images; {task} shows only the frames "
            "of its simulator."
        )


@runtime_checkable
class HeldOutSource(Protocol):
    """Provides samples that share no document, world or scene with those of training.

    A procedural source needs it if several samples are about one thing, such as a document.
    """

    def sample_held_out(self, rng: np.random.Generator) -> Sample:
        """Return a held-out sample, which depends only on the state of the generator."""
        ...


def rows_of(source: IndexedSource, held_out: bool) -> Sequence[int]:
    """Return the rows of a finite source that are played in training, or in an evaluation.

    All rows are played in both, unless the source divides them: `training_rows` and
    `held_out_rows` are then its rows for either.
    """
    name = "held_out_rows" if held_out else "training_rows"
    rows: Sequence[int] | None = getattr(source, name, None)
    return range(len(source)) if rows is None else rows


def draw(
    source: Source, rng: np.random.Generator, options: Mapping[str, Any], held_out: bool = False
) -> Sample:
    """Return the sample that `options` select (``"sample"`` or ``"index"``), else a random one.

    Args:
        source: The source.
        rng: Selects the sample if `options` select none.
        options: The options of `reset`.
        held_out: Whether the random sample must be held out from training.

    Raises:
        ConfigurationError: If the option does not fit the source.
        DataError: If the row cannot be read.
    """
    if options:
        return _named(source, options)
    if is_indexed(source):
        rows = rows_of(source, held_out)
        return source[rows[int(rng.integers(len(rows)))]]
    if held_out and isinstance(source, HeldOutSource):
        return source.sample_held_out(rng)
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


class FixedSamples:
    """Provides the samples of a procedural world for given seeds, as an `IndexedSource`.

    Each sample equals the sample of an environment with this world after ``reset(seed=seed)``::

        FixedSamples(MagsWorld("complex"), range(20))

    Args:
        world: The procedural world that makes the samples.
        seeds: One seed for each sample, a whole number of at least 0.

    Raises:
        ConfigurationError: If there is no seed, a seed occurs twice, or a seed is invalid.
    """

    def __init__(self, world: ProceduralSource, seeds: Sequence[int]) -> None:
        if not seeds or len({*seeds}) < len(seeds):
            raise ConfigurationError(
                f"FixedSamples needs at least one seed, each only once, got {list(seeds)[:20]}."
            )
        for seed in seeds:
            check_count("seed", seed, least=0)
        self.world = world
        self.seeds = tuple(seeds)
        self.world_version = world_version(world)
        declared = getattr(world, "ground_truth", None)
        if declared is not None:
            self.ground_truth = declared

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.seeds)

    def __getitem__(self, index: int) -> Sample:
        """Return the sample of the seed at `index`."""
        return self.world.sample(np.random.default_rng(self.seeds[index]))
