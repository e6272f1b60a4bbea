"""Weights on their way to an engine: names and shapes checked, tied heads completed, sums kept.

A sum is taken over bit patterns, as integers: it is exact, whatever the order, so it notices a
tensor that did not arrive or arrived as another. Of a matrix at most 16 columns count, spread
evenly: that is cheap, and possible for weights that an engine holds only in packed form.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import torch
import transformers

from visenv.errors import PolicyError

_COLUMNS = 16
_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"


def plain_name(name: str) -> str:
    """Return a weight's name without prefixes, which checkpoints, transformers and vLLM differ in.

    ``model.language_model.layers.0…``, ``model.layers.0…`` and ``language_model.model.layers.0…``
    are all ``layers.0…``; the vision tower begins with ``visual.``.
    """
    return name.removeprefix("model.").removeprefix("language_model.").removeprefix("model.")


def part_of(name: str) -> str:
    """Return the part of the model that a plain name belongs to: its layer or a top module.

    Engines fuse weights (query, key and value; gate and up), but never over parts.
    """
    words = name.split(".")
    numbered = [place for place, word in enumerate(words) if word.isdigit()]
    return ".".join(words[: numbered[0] + 1 if numbered else 2])


def columns(inputs: int) -> torch.Tensor:
    """Return the indices of the columns that count, int64, of a matrix with that many."""
    return torch.linspace(0, inputs - 1, min(inputs, _COLUMNS)).long()


def sum_of(tensor: torch.Tensor) -> int:
    """Return the sum of a weight, of its columns that count if it has any."""
    if tensor.ndim > 1:
        matrix = tensor.flatten(1)  # [outputs, inputs]
        tensor = matrix[:, columns(matrix.shape[1]).to(matrix.device)]  # [outputs, columns]
    return bits_of(tensor)


def bits_of(tensor: torch.Tensor) -> int:
    """Return the sum of all elements' bit patterns."""
    patterns = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    whole = (tensor + 0.0).contiguous()  # -0.0 becomes 0.0, as it does in a matrix product
    return int(whole.view(patterns).sum(dtype=torch.int64))


class WeightManifest:
    """The weights a model consists of.

    Args:
        model: A checkpoint folder or a hub name.

    Attributes:
        shapes: Shape of each weight, by its name in transformers, in its order.
        tied: Whether the head is the embedding.
    """

    def __init__(self, model: str) -> None:
        config = transformers.AutoConfig.from_pretrained(model)
        with torch.device("meta"):
            empty = transformers.AutoModelForImageTextToText.from_config(config)
        state: Mapping[str, torch.Tensor] = empty.state_dict()
        self.shapes = {name: tuple(weight.shape) for name, weight in state.items()}
        self.tied: bool = config.tie_word_embeddings

    def deliver(
        self, weights: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype, packs: bool
    ) -> WeightUpdate:
        """Check weights while they are iterated over; see `WeightUpdate`."""
        return WeightUpdate(self, weights, dtype, packs)


class WeightUpdate:
    """Holds one set of weights, by their names in transformers; iterate once, then ask `problem`.

    A wrong weight ends the iteration instead of raising out of it: vLLM's loader must come to its
    end, or what it has put aside spoils the next transfer.

    Args:
        manifest: Of the model.
        weights: Names and tensors.
        dtype: What the engine holds; weights are cast to it.
        packs: Whether the engine keeps a packed copy of a tied head, as vLLM's CPU build does: it
            would silently keep the old one, so the embedding is delivered once more as the head.

    Attributes:
        dtype: What the weights are cast to.
        shapes: What is delivered, in the model's order.
        sums: Of what was delivered, by plain name.
    """

    def __init__(
        self,
        manifest: WeightManifest,
        weights: Iterable[tuple[str, torch.Tensor]],
        dtype: torch.dtype,
        packs: bool,
    ) -> None:
        self.dtype = dtype
        self.sums: dict[str, int] = {}
        self._weights = weights
        self._tied = manifest.tied
        self._packs = packs
        self._names = {plain_name(name): name for name in manifest.shapes}
        self.shapes = self._order(manifest.shapes)
        self._wrong = ""

    def _order(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        if not self._tied:
            return dict(shapes)
        ordered = {}
        for name, shape in shapes.items():
            if plain_name(name) != _HEAD:
                ordered[name] = shape
            if plain_name(name) == _EMBEDDING and self._packs:
                ordered[_HEAD] = shape
        return ordered

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        try:
            for name, weight in self._weights:
                plain = plain_name(name)
                if self._tied and plain == _HEAD:
                    continue
                self._wrong = self._fault(name, weight)
                if self._wrong:
                    return
                # A copy: the trainer's is valid until the next one is asked for, and vLLM keeps
                # what it gets until a layer is complete.
                yield from self._send(plain, weight.detach().to(self.dtype, copy=True))
        except Exception as error:  # noqa: BLE001 - whatever the trainer's iterator raises
            self.fail(error)

    def relayed(
        self, weights: Iterable[tuple[str, torch.Tensor]]
    ) -> Iterable[tuple[str, torch.Tensor]]:
        """Have this delivery read from `weights`; return what it would have read from."""
        source, self._weights = self._weights, weights
        return source

    def fail(self, error: Exception) -> None:
        """Note that the weights could not be given."""
        self._wrong = f"giving them failed with {error!r}"

    def identity(self, version: int) -> str:
        """Return a name for what was delivered, alike in all processes that read these weights."""
        return hashlib.sha256(repr((version, sorted(self.sums.items()))).encode()).hexdigest()

    def problem(self) -> str:
        """Return an error in the weights that were iterated over, ``""`` if there is none."""
        missing = [name for name in self.shapes if plain_name(name) not in self.sums]
        if not self._wrong and missing:
            return f"{len(missing)} of {len(self.shapes)} are missing, {missing[0]} for one"
        return self._wrong

    def _fault(self, name: str, weight: torch.Tensor) -> str:
        plain = plain_name(name)
        if plain not in self._names:
            return f"the model has no weight {name!r}"
        if plain in self.sums:
            return f"{name!r} came twice"
        shape = self.shapes[self._names[plain]]
        if tuple(weight.shape) != shape:
            return f"{name!r} must be {list(shape)}, got {list(weight.shape)}"
        return ""

    def _send(self, plain: str, weight: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        self.sums[plain] = sum_of(weight)
        yield self._names[plain], weight
        if plain == _EMBEDDING and _HEAD in self.shapes and self._tied:
            self.sums[_HEAD] = self.sums[plain]
            yield _HEAD, weight


def compare(sent: Mapping[str, int], held: Mapping[str, int], whole: bool) -> None:
    """Compare what was sent with what an engine holds.

    Args:
        sent: By plain name.
        held: By part; of an engine that holds a share of each weight, some by plain name.
        whole: Whether it holds all of each weight.

    Raises:
        PolicyError: If it holds something else.
    """
    expected: dict[str, int] = defaultdict(int)
    for name, total in sent.items():
        expected[part_of(name) if whole else name] += total
    missing = {name for name in expected if whole} - held.keys()
    differing = [name for name, total in held.items() if expected.get(name) != total]
    if missing or differing:
        raise PolicyError(
            "The engine does not hold the weights it was sent: "
            f"{min(missing | {*differing})} differs. Load them again."
        )
