"""Defines `TransformersPolicy`: a vision-language model that samples, scores, and is trained."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Adapter, BatchBudget, TrainablePolicy, no_gather
from visenv.types import Episode, Reply, Sampling, Segment, TurnRequest, Visual

from ..tokens.codec import Codec
from ..tokens.family import VideoMode
from ..tokens.processor import save_processor
from ..tokens.qwen_vl import require_qwen_vl
from ..tokens.session import TokenSession
from .attention import ATTENTION
from .checkpoint import frozen, holds, load_model, named_weights, restore, save_model
from .decode import Decoder
from .generate import Batcher, Generator
from .lora import LoraSettings, adapt, read_adapter
from .network import QwenVLParts
from .pack import PackedBatch, pack
from .padded import PaddedBatch, PaddedModel, PaddedScoring, check_no_dropout, pad, split_rows
from .parts import split
from .score import ScoringModule
from .shards import is_wanted, shape_of
from .turn import RunningTurn


class TransformersPolicy(TrainablePolicy[TokenSession]):
    """Runs a vision-language checkpoint with transformers.

    Qwen2.5-VL and Qwen3-VL are packed: segments share their prefixes (`pack`), and keys and values
    stay with their session between turns (`decode`). All other models are run by their public
    interface: rows are padded (`padded`), and `generate` samples (`generate`).

    Replies that are requested at the same time are sampled as one batch. Tokens are append-only
    (`ChatTemplate`). The module `decode` describes banned and constrained tokens and the recorded
    log-probabilities.

    If the weights are updated during a session, its keys and values are recomputed, and each
    sampled token is stored with the version that sampled it.

    With ``accelerate launch --zero3_init_flag true``, each process loads a shard of every weight,
    and the policy then computes only inside of a trainer.

    Args:
        model: A checkpoint folder or a hub name.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``…
        dtype: Type of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        max_batch: Maximum number of turns that are sampled at the same time.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit. Both
            limits apply to images; videos keep the limits of the checkpoint's video processor.
        video: How videos are shown: ``"native"``, by the model's video tokens, or ``"frames"``, as
            images; None is native if the checkpoint supports it, otherwise frames.
        fp32_head: Whether logits are computed in float32 for all values of `dtype`.
        freeze_vision: Whether the vision tower is not trained; its features of an image are then
            cached.
        vision_cache: Maximum number of bytes of each cache: of features, and of inputs of the model
            made from images and from videos.
        lora: `LoraSettings`, or their fields by name. If given, only adapters of the language model
            are trained.
        gradient_checkpointing: Whether the activations of each layer are recomputed for the
            gradient: a third more computation for a fraction of the memory.
        threads: CPU threads of PyTorch, for the whole process; None does not change them. More
            threads than idle cores make small models several times slower.

    Attributes:
        codec: Converts between messages and tokens.
        network: The parts of the model.
        decoder: Samples batches of turns.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If its architecture, tokenizer or chat template is not supported; the message
            says why.
        ConfigurationError: If `dtype` is not one of the three, or visenv does not know the results
            of this version of transformers.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        max_batch: int = 128,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        video: VideoMode | None = None,
        fp32_head: bool = False,
        freeze_vision: bool = False,
        vision_cache: int = 2**30,
        lora: LoraSettings | Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
        threads: int | None = None,
    ) -> None:
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ConfigurationError(
                f"dtype must be 'float32', 'bfloat16' or 'float16', got {dtype!r}."
            )
        if threads is not None:
            torch.set_num_threads(threads)
        sharded = is_wanted()
        loaded = load_model(str(model), getattr(torch, dtype), ATTENTION, sharded=sharded)
        loaded = loaded.eval() if sharded else loaded.to(device).eval()
        rows = shape_of(loaded.get_output_embeddings().weight)[0]
        self.codec = Codec(str(model), rows, min_pixels, max_pixels, video, capacity=vision_cache)
        for weight in self.codec.family.vision(loaded):
            weight.requires_grad_(not freeze_vision)
        if isinstance(lora, Mapping):
            lora = LoraSettings(**lora)
        if lora is not None:
            adapt(loaded, lora)
        self._checkpointing = gradient_checkpointing
        if gradient_checkpointing:
            check_no_dropout(loaded)
            name = "activation_checkpointing_enable"  # deprecates the other name since 5.24
            enable = getattr(loaded, name, loaded.gradient_checkpointing_enable)
            enable({"use_reentrant": False})
            loaded.disable_input_require_grads()  # only reentrant checkpointing needs them
        self.image_processor = self.codec.family.fingerprint(with_videos=False)
        self._context: int = loaded.config.get_text_config().max_position_embeddings
        self._max_batch = max_batch
        self._options: dict[str, Any] = {"fp32_head": fp32_head, "vision_cache": vision_cache}
        self.version = 0
        self._lora = lora
        self._bare = False
        self._adopt(loaded)
        if not sharded:  # a model in shards computes only inside of a trainer
            self.network.check()

    def _adopt(self, model: Any) -> None:
        """Use this model; `_bare` disables its adapters."""
        codec = self.codec
        banned = torch.from_numpy(codec.banned)
        if codec.family.packs:
            packed = QwenVLParts(model, banned, bare=self._bare, **self._options)
            family = require_qwen_vl(codec.family)
            spelling, end = codec.vocabulary.bytes, codec.end_id
            self.network: QwenVLParts | PaddedModel = packed
            self.decoder: Decoder | Generator = Decoder(
                packed, family, spelling, end, self._context
            )
            self.module: torch.nn.Module = ScoringModule(packed)
        else:
            fp32_head = self._options["fp32_head"]
            padded = PaddedModel(model, codec, fp32_head=fp32_head, bare=self._bare)
            self.network = padded
            self.decoder = Generator(padded, codec, self._context, bare=self._bare)
            self.module = PaddedScoring(padded)
        self._batcher = Batcher[RunningTurn](self._sample, self._max_batch)

    def _sample(self, turns: Sequence[RunningTurn]) -> None:
        if self.network.head.weight.numel() == 0:
            raise PolicyError(
                "The weights of this policy are in shards (--zero3_init_flag true), so it samples "
                "only inside of a trainer: let an engine sample, or launch without the flag."
            )
        if self.network.model.training:
            self.train_mode(False)  # a layer with checkpointing caches no keys
        self.decoder.sample(turns, self.version)

    # ------------------------------------------------------------------ sampling

    @override
    def open(self, seed: int) -> TokenSession:
        return self.codec.open(seed)

    @override
    async def respond(
        self, session: TokenSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Sample the next turn, in one batch with all turns that are requested at the same time.

        The turn ends with the end token, after a stop string, or at the token limit. With a regex,
        a stop string ends the turn only if the whole turn matches. If the limit ends a turn before
        it matches, the finish reason is ``"length"``.

        Raises:
            PolicyError: If the context is full, or the regular expression cannot be used.
        """
        turn = self._turn(session, request, sampling)
        await self._batcher.submit(turn)
        if turn.finish is None:
            raise PolicyError(f"The context of {self._context} tokens is full.")
        said = (turn.token_ids, turn.logprobs, self.version, turn.finish, request.regex)
        session.stream.say(session.turn, *said)
        reply = Reply(
            self.codec.text(turn.token_ids, request.prefill),
            np.array(turn.token_ids, np.int32),
            np.array(turn.logprobs, np.float32),
            turn.finish,
        )
        session.said(reply)
        return reply

    def _turn(self, session: TokenSession, request: TurnRequest, sampling: Sampling) -> RunningTurn:
        session.sample_at(sampling.temperature)
        increment = self.codec.increment(session.stream, session.pending, request)
        session.pending = []
        self.codec.family.check(increment.items)
        limits = (sampling.max_tokens, request.max_tokens or sampling.max_tokens)
        return RunningTurn(
            stream=session.stream,
            increment=increment,
            rng=session.rng if sampling.temperature else None,
            temperature=sampling.temperature or 1.0,
            limit=min(limits),
            stop=tuple(stop.encode() for stop in request.stop),
            constraint=None if request.regex is None else self.codec.constraints.get(request.regex),
        )

    # ------------------------------------------------------------------ training

    @override
    def encode(self, episode: Episode) -> Episode:
        return self.codec.encode(episode, self.version)

    @override
    def split(self, segments: Sequence[Segment], budget: BatchBudget) -> list[list[int]]:
        """Split by `parts.split`; in each part, a shared prefix is read once and counts once.

        Models that are not packed are split by `split_rows`.
        """
        return split(segments, budget) if self.codec.family.packs else split_rows(segments, budget)

    @override
    def collate(
        self, segments: Sequence[Segment], images: Mapping[str, Visual]
    ) -> PackedBatch | PaddedBatch:
        """Pack by `pack` into one row, in which a shared prefix occurs once, or pad by `pad`."""
        if isinstance(self.network, PaddedModel):
            return pad(self.network, self.codec, segments, images)
        return pack(self.codec, segments, images)

    @override
    def train_mode(self, on: bool) -> None:
        """Set PyTorch's flag.

        Scores do not depend on it: Qwen-VL has no dropout, and other models stay in evaluation mode
        unless gradient checkpointing needs the flag, for which a dropout is refused.
        """
        self.network.model.train(on and (self.codec.family.packs or self._checkpointing))

    @override
    def updated(self) -> None:
        """Count a weight update; keys and values of older weights are recomputed when needed."""
        self.version += 1

    @override
    def parameters(self) -> Iterable[torch.nn.Parameter]:
        return [] if self._bare else super().parameters()

    @override
    def named_weights(
        self,
        gather_params: Callable[
            [Sequence[torch.nn.Parameter]], AbstractContextManager[None]
        ] = no_gather,
        *,
        merge: bool = True,
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights; merging LoRA adapters into them does not change the model."""
        return named_weights(self.network.model, gather_params, merge=merge and not self._bare)

    @override
    def adapter(
        self,
        gather_params: Callable[
            [Sequence[torch.nn.Parameter]], AbstractContextManager[None]
        ] = no_gather,
    ) -> Adapter | None:
        if self._lora is None or self._bare:
            return None
        return read_adapter(self.network.model, gather_params)

    @override
    def save(self, folder: Path) -> None:
        """Write a checkpoint that stock transformers and vLLM can load.

        LoRA adapters are merged into its weights, and also written in the format of peft to its
        folder ``adapter``.
        """
        save_model(self.network.model, folder, merge=not self._bare)
        save_processor(self.codec.processor, folder)

    @override
    def load_weights(self, folder: Path) -> None:
        """Load a checkpoint that `save` wrote; this counts as an update.

        With LoRA, adapters are loaded if the folder has some, for the same model. Otherwise the
        weights are loaded, and the adapters are reset.

        Raises:
            RunError: If the folder contains no checkpoint, or one of another model.
        """
        if self._bare and not holds(self.network.model, folder):
            self._own_model()
        if not self._bare:
            restore(self.network.model, folder)
        self.network.forget()
        self.updated()

    @override
    def copy_frozen(self) -> TransformersPolicy:
        """Return a frozen copy; its tokenizer and processed images are shared with this policy.

        While the LoRA adapters are untrained, the copy uses this model without its adapters.
        """
        twin = copy.copy(self)
        if self._lora is not None and self.version == 0:
            twin._bare = True  # noqa: SLF001 - an object of this class
            twin._adopt(self.network.model)  # noqa: SLF001
        else:
            twin._own_model()  # noqa: SLF001
        return twin

    def _own_model(self) -> None:
        self._bare = False
        self._adopt(frozen(self.network.model))
