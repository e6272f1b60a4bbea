"""Converts between messages and tokens of one checkpoint, for its samplers and trainers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Episode, Message, TurnRequest

from .config import read_config
from .constrain import RegexConstraints
from .families import load_family
from .family import Checkpoint, ModelFamily, VideoMode
from .fingerprint import fingerprint_of
from .processor import load_processor
from .session import TokenSession, TokenStream
from .template import ChatTemplate, Increment
from .vision import ImageEncoder
from .vocabulary import Vocabulary


class Codec:
    """Combines tokenizer, chat template and processors of a checkpoint, and checks that they match.

    Args:
        model: A checkpoint folder or a hub name.
        rows: Rows of the model's output head, with padding.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit. Both
            limits apply to images; videos keep the limits of the checkpoint's video processor.
        video: How videos are shown; None is native if the checkpoint supports it, otherwise frames.
        image_encoder: Makes the encoder of images from the image processor and the capacity.
        capacity: Maximum number of bytes of cached inputs of images, and again of videos.

    Attributes:
        processor: The tokenizer, image processor and video processor of the checkpoint.
        family: Converts images and videos to tokens, and to inputs of the model.
        vocabulary: The bytes or the control token of each token id.
        template: The chat template's increments.
        banned: bool ``[rows]``: the tokens that are never sampled.
        constraints: Converts regular expressions to sets of allowed tokens.
        end_id: The token that ends a turn.
        image_id: The placeholder token of an image.

    Raises:
        PolicyError: If architecture, tokenizer or chat template are not supported, or videos cannot
            be shown natively as requested; the message says why.
        ConfigurationError: If `min_pixels` exceeds `max_pixels`.
    """

    def __init__(
        self,
        model: str,
        rows: int,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        video: VideoMode | None = None,
        image_encoder: Callable[[Any, int], ImageEncoder] = ImageEncoder,
        capacity: int = 2**30,
    ) -> None:
        if video not in (None, "native", "frames"):
            raise ConfigurationError(f"video must be 'native' or 'frames', got {video!r}.")
        self.processor = load_processor(model)
        self.vocabulary = Vocabulary(self.processor.tokenizer, rows)
        self.template = ChatTemplate(self.processor, self.vocabulary)
        self.end_id = self.template.end_id
        self.image_id = self.template.image_id
        config = read_config(model)
        self.family: ModelFamily = load_family(config.model_type)(
            Checkpoint(model, config, self.processor, self.template),
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            video=video,
            image_encoder=image_encoder,
            capacity=capacity,
        )
        beyond = [token for token in self.family.placeholder_ids if token >= rows]
        if beyond:
            raise PolicyError(
                f"The placeholder of images in the configuration of {model} is the token "
                f"{beyond[0]}, and the model has only {rows} tokens."
            )
        self.banned = self.vocabulary.banned(self.end_id)
        self.constraints = RegexConstraints(self.vocabulary, self.banned, self.end_id)

    @staticmethod
    def fingerprint_of(processor: Any) -> str:
        """Return the fingerprint of an image processor, as segments and families contain it."""
        return fingerprint_of(processor)

    def open(self, seed: int) -> TokenSession:
        """Return a new session with its own sampling seed."""
        return TokenSession(self.family, seed)

    def increment(
        self, stream: TokenStream, messages: Sequence[Message], request: TurnRequest
    ) -> Increment:
        """Return the tokens to append before the policy samples; placeholders are not expanded.

        Raises:
            PolicyError: If the chat template opens a thought in each turn, and the turn must match
                a regular expression that does not know about the thought.
        """
        if request.regex is not None and not self.template.begins(request.prefill):
            raise PolicyError(
                f"The chat template begins each turn with {self.template.opening!r}, so that a "
                f"turn cannot match {request.regex[:80]!r}. Use a checkpoint or a chat template "
                "without thoughts, or a prefill that begins with the same text."
            )
        ended = bool(stream.turns) and stream.token_ids[-1] == self.end_id
        return self.template.increment(messages, request.prefill, bool(stream.turns), ended)

    def text(self, token_ids: list[int], prefill: str) -> str:
        """Return the whole text of a turn.

        Args:
            token_ids: The sampled tokens.
            prefill: The prefill of the turn.
        """
        return self.template.start(prefill) + self.vocabulary.decode(token_ids)

    def encode(self, episode: Episode, version: int) -> Episode:
        """Return the episode as if a policy had sampled its turns, each closed by the end token.

        The prefill of a turn is masked, as in sampling. The log-probabilities are unknown: they are
        NaN. Constraints are omitted, because the policy should learn to write such turns without
        them.

        Args:
            episode: An episode of any policy.
            version: Version of the weights, which is stored with every token.
        """
        session = self.open(seed=0)
        for turn in episode.turns:
            session.observe(turn.messages, turn.request.context)
            stream = session.stream
            request = turn.request._replace(regex=None)
            increment = self.increment(stream, session.pending, request)
            session.pending = []
            self.family.check(increment.items)
            stream.show(increment, self.family)
            sampled = self.template.sampled(turn.text, turn.request.prefill)
            said = self.vocabulary.encode(sampled)
            said.append(self.end_id)
            stream.say(session.turn, said, [math.nan] * len(said), version, turn.finish_reason)
        return replace(episode, segments=session.segments())
