"""TransformersPolicy: a Qwen-VL model that plays, scores its own tokens, and can be trained."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from visenv.env import Observation
from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Scores, TrainablePolicy
from visenv.types import Ask, Episode, Image, Message, Reply, Sampling, Segment

from .batch import Batcher
from .checkpoint import frozen, load_model, restore, save_model
from .constrain import Constraints
from .decode import Decoder, Turn
from .network import ATTENTION, Network
from .processor import load_processor, save_processor
from .score import score
from .session import Stream, TokenSession
from .template import ChatTemplate, Increment
from .vision import ImageEncoder
from .vocabulary import Vocabulary


class TransformersPolicy(TrainablePolicy[TokenSession]):
    """A Qwen2.5-VL or Qwen3-VL checkpoint, run by transformers.

    Replies asked for at the same time are sampled as one batch; keys and values stay with their
    session between turns. Tokens are append-only (`ChatTemplate`); what is banned or constrained,
    and which log-probability is recorded, is told in `decode`.

    A session may live through weight updates: its keys and values are then computed anew, and each
    sampled token carries the version that sampled it.

    Args:
        model: A checkpoint folder or a hub name.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``…
        dtype: Of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        max_batch: Most turns sampled at once.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit.
        threads: CPU threads of PyTorch, for the whole process; None leaves them as they are. More
            threads than idle cores make small models several times slower.

    Attributes:
        processor: The checkpoint's own tokenizer and image processor.
        encoder: Runs the image processor, each distinct image once.
        vocabulary: What each token id stands for.
        template: The chat template's increments.
        banned: bool ``[vocabulary]``: the tokens that have no probability.
        network: The model, its parts one by one.
        decoder: Samples batches of turns.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If its architecture, tokenizer or chat template cannot be used; says why.
        ConfigurationError: If `dtype` is not one of the three.
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
        threads: int | None = None,
    ) -> None:
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ConfigurationError(
                f"dtype must be 'float32', 'bfloat16' or 'float16', got {dtype!r}."
            )
        if threads is not None:
            torch.set_num_threads(threads)
        attention = ATTENTION if device == "cpu" else "sdpa"
        loaded = load_model(str(model), getattr(torch, dtype), attention).to(device).eval()
        self.processor = load_processor(str(model))
        _limit_pixels(self.processor.image_processor, min_pixels, max_pixels)
        self.encoder = ImageEncoder(self.processor.image_processor)
        rows = loaded.get_output_embeddings().weight.shape[0]
        self.vocabulary = Vocabulary(self.processor.tokenizer, rows)
        self.template = ChatTemplate(self.processor, self.vocabulary)
        self.banned = self.vocabulary.banned(self.template.end_id)
        self._constraints = Constraints(self.vocabulary, self.banned, self.template.end_id)
        self._context: int = loaded.config.text_config.max_position_embeddings
        self._max_batch = max_batch
        self.version = 0
        self._adopt(loaded)

    def _adopt(self, model: Any) -> None:
        """Make `model` the one that is run."""
        self.network = Network(model, torch.from_numpy(self.banned))
        spelling, end = self.vocabulary.bytes, self.template.end_id
        placeholder = self.template.image_id
        self.decoder = Decoder(
            self.network, self.encoder, spelling, end, placeholder, self._context
        )
        self._batcher = Batcher[Turn](self._sample, self._max_batch)

    def _sample(self, turns: Sequence[Turn]) -> None:
        self.decoder.sample(turns, self.version)

    # ------------------------------------------------------------------ sampling

    def open(self, env: gym.Env[Observation, str], seed: int) -> TokenSession:
        """A new session; the environment is not looked at."""
        return TokenSession(self.encoder, self.template.image_id, seed)

    async def respond(self, session: TokenSession, ask: Ask, sampling: Sampling) -> Reply:
        """Sample the next turn, together with whoever else asks now.

        It ends with the end token, after a stop string, or at the token limit; with `ask.regex`, a
        stop string ends it only where the whole turn matches. A limit may cut a turn before it
        matches: the finish reason is then ``"length"``.

        Raises:
            PolicyError: If the context is full, or the regular expression cannot be used.
        """
        turn = self._turn(session, ask, sampling)
        await self._batcher.submit(turn)
        if turn.finish is None:
            raise PolicyError(f"The context of {self._context} tokens is full.")
        said = (turn.token_ids, turn.logprobs, self.version, turn.finish, ask.regex)
        session.stream.say(session.turn, *said)
        reply = Reply(
            ask.prefix + self.vocabulary.decode(turn.token_ids),
            np.array(turn.token_ids, np.int32),
            np.array(turn.logprobs, np.float32),
            turn.finish,
        )
        session.said(reply)
        return reply

    def _turn(self, session: TokenSession, ask: Ask, sampling: Sampling) -> Turn:
        session.sample_at(sampling.temperature)
        increment = self._increment(session.stream, session.pending, ask.prefix)
        session.pending = []
        self.encoder.check(increment.images)
        limits = (sampling.max_tokens, ask.max_tokens or sampling.max_tokens)
        return Turn(
            stream=session.stream,
            increment=increment,
            rng=session.rng if sampling.temperature else None,
            temperature=sampling.temperature or 1.0,
            limit=min(limits),
            stop=tuple(stop.encode() for stop in ask.stop),
            constraint=None if ask.regex is None else self._constraints.get(ask.regex),
        )

    def _increment(self, stream: Stream, messages: Sequence[Message], prefix: str) -> Increment:
        ended = bool(stream.turns) and stream.token_ids[-1] == self.template.end_id
        return self.template.increment(messages, prefix, bool(stream.turns), ended)

    # ------------------------------------------------------------------ training

    def encode(self, episode: Episode) -> Episode:
        """The episode as if this policy had said its turns, each closed by the end token.

        What a turn was pre-filled with is masked, as it is when sampling. There are no
        log-probabilities: they are NaN. Nor are there constraints: what a demonstration teaches,
        the policy should know unforced.
        """
        session = TokenSession(self.encoder, self.template.image_id, seed=0)
        for turn in episode.turns:
            session.observe(turn.messages, turn.ask.context)
            stream = session.stream
            increment = self._increment(stream, session.pending, turn.ask.prefix)
            session.pending = []
            stream.show(increment, self.encoder, self.template.image_id)
            said = self.vocabulary.encode(turn.text.removeprefix(turn.ask.prefix))
            said.append(self.template.end_id)
            stream.say(session.turn, said, [math.nan] * len(said), self.version, turn.finish_reason)
        return replace(episode, segments=session.segments())

    def score(self, segments: Sequence[Segment], images: Mapping[str, Image]) -> Scores:
        """Log-probabilities of the sampled tokens, with gradient.

        Raises:
            PolicyError: If a segment comes from another image processor, or an image is missing.
        """
        return score(self.network, self.encoder, self._constraints, segments, images)

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The trainable parameters."""
        return [one for one in self.network.model.parameters() if one.requires_grad]

    def train_mode(self, on: bool) -> None:
        """Set PyTorch's flag; neither architecture has dropout, so scores do not depend on it."""
        self.network.model.train(on)

    def updated(self) -> None:
        """Count a weight update; keys and values of older weights are computed anew when needed."""
        self.version += 1

    def save(self, folder: Path) -> None:
        """Write a checkpoint that stock transformers and vLLM load."""
        folder.mkdir(parents=True, exist_ok=True)
        save_model(self.network.model, folder)
        save_processor(self.processor, folder)

    def load_weights(self, folder: Path) -> None:
        """Read back what `save` wrote; counts as an update.

        Raises:
            RunError: If the folder holds no checkpoint, or one of another model.
        """
        restore(self.network.model, folder)
        self.updated()

    def copy_frozen(self) -> TransformersPolicy:
        """A frozen copy with the present weights; tokenizer and processed images are shared."""
        twin = copy.copy(self)
        twin._adopt(frozen(self.network.model))  # noqa: SLF001 - a copy of ourselves
        return twin


def _limit_pixels(image_processor: Any, smallest: int | None, largest: int | None) -> None:
    size = {
        "shortest_edge": smallest or image_processor.size["shortest_edge"],
        "longest_edge": largest or image_processor.size["longest_edge"],
    }
    if size["shortest_edge"] > size["longest_edge"]:
        raise ConfigurationError(
            f"min_pixels {size['shortest_edge']} exceeds max_pixels {size['longest_edge']}."
        )
    image_processor.size = size  # both edges hold pixel counts, Qwen's use of these names
