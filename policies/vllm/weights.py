"""Checks weights for an engine: names and shapes, tied heads, and checksums.

A sum is computed over bit patterns as integers. It is exact and does not depend on the order, so
that it detects tensors that did not arrive or changed. Of a matrix, at most 16 columns are summed,
spread evenly. This is fast, and possible for weights that an engine only has in packed form.

`WeightCheck` checks that a vLLM server still holds the weights that were sent to it.

Another user may restart a server, or another program may send it weights. The weights therefore
have an identity, and sampled tokens are only accepted if the server had that identity after the
last sign that it may have changed. Signs are a new connection, a connection error, a turn that was
interrupted by others, a time without any turn, and each transfer of weights itself. After an
interruption by others, every turn that ends is checked until no turn is active, because the weights
may change after the first checks, and the server may hold turns until then. A turn that is answered
before the reply to the interrupted turn arrives is not detected.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

import torch
import transformers

from visenv.errors import PolicyError
from visenv.pretrained import load_pretrained

_COLUMNS = 16


def plain_name(name: str) -> str:
    """Return the name of a weight without its prefix, which differs between packages.

    ``model.language_model.layers.0…``, ``model.layers.0…`` and ``language_model.model.layers.0…``
    all become ``layers.0…``; names of the vision tower begin with ``visual.``.
    """
    return name.removeprefix("model.").removeprefix("language_model.").removeprefix("model.")


def part_of(name: str) -> str:
    """Return the part of the model to which a plain name belongs: its layer or a top module.

    Engines fuse weights (query, key and value; gate and up), but never across parts.
    """
    words = name.split(".")
    numbered = [place for place, word in enumerate(words) if word.isdigit()]
    return ".".join(words[: numbered[0] + 1 if numbered else 2])


def columns(inputs: int) -> torch.Tensor:
    """Return the indices of the columns to sum, int64, for a matrix with `inputs` columns."""
    return torch.linspace(0, inputs - 1, min(inputs, _COLUMNS)).long()


def sum_of(tensor: torch.Tensor) -> int:
    """Return the sum of a weight; of a matrix, only the selected columns are summed."""
    if tensor.ndim > 1:
        matrix = tensor.flatten(1)  # [outputs, inputs]
        tensor = matrix[:, columns(matrix.shape[1]).to(matrix.device)]  # [outputs, columns]
    return bits_of(tensor)


def bits_of(tensor: torch.Tensor) -> int:
    """Return the sum of all elements' bit patterns."""
    patterns = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    whole = (tensor + 0.0).contiguous()  # -0.0 becomes 0.0, as it does in a matrix product
    return int(whole.view(patterns).sum(dtype=torch.int64))  # a view of the same shape


class WeightManifest:
    """Lists the weights of a model.

    Args:
        model: A checkpoint folder or a hub name.

    Attributes:
        shapes: Shape of each weight, by its name in transformers, in the order of the model.
        embedding: Name of the embedding.
        head: Name of the head.
        tied: Whether the head is the embedding.
    """

    def __init__(self, model: str) -> None:
        config = load_pretrained(transformers.AutoConfig, model)
        with torch.device("meta"):
            empty = transformers.AutoModelForImageTextToText.from_config(config)
        state: Mapping[str, torch.Tensor] = empty.state_dict()
        self.shapes = {name: tuple(weight.shape) for name, weight in state.items()}
        embedding, head = empty.get_input_embeddings(), empty.get_output_embeddings()
        names = {module: f"{name}.weight" for name, module in empty.named_modules()}
        self.embedding, self.head = names[embedding], names[head]
        self.tied: bool = head.weight is embedding.weight

    def deliver(
        self, weights: Iterable[tuple[str, torch.Tensor]], dtype: torch.dtype, packs: bool
    ) -> WeightUpdate:
        """Return the weights with checks that run during the iteration; see `WeightUpdate`."""
        return WeightUpdate(self, weights, dtype, packs)


class WeightUpdate:
    """Holds a set of weights, by their names in transformers; iterate once, then read `problem`.

    A wrong weight ends the iteration instead of raising an exception in it: vLLM's loader must
    finish, or its stored tensors break the next transfer.

    Args:
        manifest: The manifest of the model.
        weights: Names and tensors.
        dtype: Type of the engine's weights, to which the weights are converted.
        packs: Whether the engine keeps a packed copy of a tied head, as vLLM's CPU build does. It
            would silently keep the old copy, so that the embedding is sent again as the head.

    Attributes:
        dtype: Type to which the weights are converted.
        shapes: Shapes of the weights, in the order of the model.
        sums: Sums of the weights that were sent, by plain name.
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
        self._embedding, self._head = manifest.embedding, manifest.head
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
            if name != self._head:
                ordered[name] = shape
            if name == self._embedding and self._packs:
                ordered[self._head] = shape
        return ordered

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        try:
            for name, weight in self._weights:
                plain = plain_name(name)
                if self._tied and self._names.get(plain) == self._head:
                    continue
                self._wrong = self._fault(name, weight)
                if self._wrong:
                    return
                # A copy, because the trainer's tensor is only valid until the next one is
                # requested, and vLLM stores tensors until a layer is complete.
                yield from self._send(plain, weight.detach().to(self.dtype, copy=True))
        except Exception as error:  # noqa: BLE001 - whatever the trainer's iterator raises
            self.fail(error)

    def relayed(
        self, weights: Iterable[tuple[str, torch.Tensor]]
    ) -> Iterable[tuple[str, torch.Tensor]]:
        """Read this delivery from `weights` instead; return its previous source."""
        source, self._weights = self._weights, weights
        return source

    def fail(self, error: Exception) -> None:
        """Record that the weights could not be read."""
        self._wrong = f"reading them failed with {error!r}"

    def identity(self, version: int) -> str:
        """Return a name of the sent weights, equal in all processes that read these weights."""
        return hashlib.sha256(repr((version, sorted(self.sums.items()))).encode()).hexdigest()

    def problem(self) -> str:
        """Return a description of an error in the weights, ``""`` if there is none."""
        missing = [name for name in self.shapes if plain_name(name) not in self.sums]
        if not self._wrong and missing:
            return f"{len(missing)} of {len(self.shapes)} are missing, for example {missing[0]}"
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
        name = self._names[plain]
        self.sums[plain] = sum_of(weight)
        yield name, weight
        if name == self._embedding and self._head in self.shapes and self._tied:
            self.sums[plain_name(self._head)] = self.sums[plain]
            yield self._head, weight


def compare(sent: Mapping[str, int], held: Mapping[str, int], whole: bool) -> None:
    """Compare the sent weights with those of an engine.

    Args:
        sent: Sums by plain name.
        held: Sums by part; for an engine with a shard of each weight, some by plain name.
        whole: Whether the engine has all of each weight.

    Raises:
        PolicyError: If the engine has other weights.
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


class WeightCheck:
    """Asks a server for its weights when they may have changed.

    Args:
        holds: Returns whether the server holds the weights of an identity.

    Attributes:
        identity: The identity of the weights that were sent last.
        lost: Whether the server does not hold them.
    """

    def __init__(self, holds: Callable[[str], Awaitable[bool]]) -> None:
        self.identity = ""
        self.lost = False
        self._holds = holds
        self._doubts, self._checked = 1, 0
        self._interrupted = False
        self._asking = asyncio.Lock()

    def doubt(self) -> None:
        """Record that the weights of the server may have changed."""
        self._doubts += 1

    def begin_turns(self) -> None:
        """Record that a turn begins while no other is active.

        A transfer by others would have interrupted an active turn, but nothing shows a transfer in
        the time before.
        """
        self.doubt()
        self._interrupted = False

    def record_interruption(self) -> None:
        """Record that others interrupted a turn: all turns that overlap with it are checked."""
        self._interrupted = True

    async def passes(self) -> bool:
        """Return whether the server holds the weights; ask it if they are in doubt."""
        self._doubts += self._interrupted
        async with self._asking:
            doubts = self._doubts
            if self._checked < doubts and not self.lost:
                self.lost = not await self._holds(self.identity)
                self._checked = doubts
        return not self.lost
