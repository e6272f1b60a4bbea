"""Converts between messages and tokens of one checkpoint, for its samplers and trainers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import transformers

from visenv.errors import ConfigurationError, PolicyError
from visenv.pretrained import load_pretrained
from visenv.types import Episode, Message, TurnRequest

from .constrain import RegexConstraints
from .media import Media
from .processor import load_processor
from .session import TokenSession, TokenStream
from .template import ChatTemplate, Increment
from .video import VideoEncoder
from .vision import ImageEncoder
from .vocabulary import Vocabulary

VideoMode = Literal["native", "frames"]
"""How a video is shown: by the video tokens of the model, or as images, frame by frame."""


class Codec:
    """Combines tokenizer, chat template and processors of a checkpoint, and checks that they match.

    Args:
        model: A checkpoint folder or a hub name.
        rows: Rows of the model's output head, with padding.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit. Both
            limits apply to images; videos keep the limits of the checkpoint's video processor.
        video: How videos are shown; None is native if the checkpoint supports it, otherwise frames.
        image_encoder: Makes the encoder of images.

    Attributes:
        processor: The tokenizer, image processor and video processor of the checkpoint.
        encoder: Runs the image processor once for each distinct image.
        media: Converts images and videos to tokens.
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
        image_encoder: Callable[[Any], ImageEncoder] = ImageEncoder,
    ) -> None:
        if video not in (None, "native", "frames"):
            raise ConfigurationError(f"video must be 'native' or 'frames', got {video!r}.")
        self.processor = load_processor(model)
        _limit_pixels(self.processor.image_processor, min_pixels, max_pixels)
        self.encoder = image_encoder(self.processor.image_processor)
        self.vocabulary = Vocabulary(self.processor.tokenizer, rows)
        self.template = ChatTemplate(self.processor, self.vocabulary)
        self.end_id = self.template.end_id
        self.image_id = self.template.image_id
        videos = None if video == "frames" else self._videos(model, required=video == "native")
        self.media = Media(self.encoder, self.image_id, videos)
        self.banned = self.vocabulary.banned(self.end_id)
        self.constraints = RegexConstraints(self.vocabulary, self.banned, self.end_id)

    def open(self, seed: int) -> TokenSession:
        """Return a new session with its own sampling seed."""
        return TokenSession(self.media, seed)

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
            self.media.check(increment.items)
            stream.show(increment, self.media)
            sampled = self.template.sampled(turn.text, turn.request.prefill)
            said = self.vocabulary.encode(sampled)
            said.append(self.end_id)
            stream.say(session.turn, said, [math.nan] * len(said), version, turn.finish_reason)
        return replace(episode, segments=session.segments())

    def _videos(self, model: str, *, required: bool) -> VideoEncoder | None:
        """Return the encoder of videos, or None if they can only be shown as frames."""
        vision = load_pretrained(transformers.AutoConfig, model).vision_config
        try:
            self.template.require_video()
            return VideoEncoder(self.processor, getattr(vision, "tokens_per_second", 1.0))
        except (PolicyError, ConfigurationError) as error:
            if required:
                raise PolicyError(
                    f"{model} cannot show videos natively, only as frames (video='frames'): {error}"
                ) from error
            return None


def _limit_pixels(image_processor: Any, smallest: int | None, largest: int | None) -> None:
    size = {
        "shortest_edge": smallest or image_processor.size["shortest_edge"],
        "longest_edge": largest or image_processor.size["longest_edge"],
    }
    if size["shortest_edge"] > size["longest_edge"]:
        raise ConfigurationError(
            f"min_pixels {size['shortest_edge']} exceeds max_pixels {size['longest_edge']}."
        )
    image_processor.size = size  # both edges are pixel counts in Qwen's processors
