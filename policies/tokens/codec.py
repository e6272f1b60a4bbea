"""One checkpoint's way between messages and tokens; samplers and trainers of it share this."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import transformers

from visenv.errors import ConfigurationError, PolicyError
from visenv.types import Episode, Message

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
    """Combines tokenizer, chat template and processors of a checkpoint, proved to fit.

    Args:
        model: A checkpoint folder or a hub name.
        rows: Rows of the model's head, padding included.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit. Both
            are limits of images; videos keep those of the checkpoint's video processor.
        video: How videos are shown; None is native if the checkpoint can, otherwise frames.
        image_encoder: Makes the encoder of images.

    Attributes:
        processor: The checkpoint's own tokenizer, image processor and video processor.
        encoder: Runs the image processor, each distinct image once.
        media: Images and videos as tokens.
        vocabulary: What each token id stands for.
        template: The chat template's increments.
        banned: bool ``[rows]``: the tokens that have no probability.
        constraints: Regular expressions as sets of allowed tokens.
        end_id: The token that ends a turn.
        image_id: The placeholder of an image.

    Raises:
        PolicyError: If architecture, tokenizer or chat template cannot be used, or videos cannot be
            shown natively as asked; says why.
        ConfigurationError: If the limits of pixels contradict each other.
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

    def increment(self, stream: TokenStream, messages: Sequence[Message], prefix: str) -> Increment:
        """Return the tokens to append before the policy samples; placeholders are unexpanded."""
        ended = bool(stream.turns) and stream.token_ids[-1] == self.end_id
        return self.template.increment(messages, prefix, bool(stream.turns), ended)

    def encode(self, episode: Episode, version: int) -> Episode:
        """Return the episode as if a policy had sampled its turns, each closed by the end token.

        What a turn was pre-filled with is masked, as it is when sampling. There are no
        log-probabilities: they are NaN. Nor are there constraints: what a demonstration teaches,
        the policy should know unforced.

        Args:
            episode: Played by anyone.
            version: Of the weights, noted with every token.
        """
        session = self.open(seed=0)
        for turn in episode.turns:
            session.observe(turn.messages, turn.request.context)
            stream = session.stream
            increment = self.increment(stream, session.pending, turn.request.prefill)
            session.pending = []
            self.media.check(increment.items)
            stream.show(increment, self.media)
            said = self.vocabulary.encode(turn.text.removeprefix(turn.request.prefill))
            said.append(self.end_id)
            stream.say(session.turn, said, [math.nan] * len(said), version, turn.finish_reason)
        return replace(episode, segments=session.segments())

    def _videos(self, model: str, *, required: bool) -> VideoEncoder | None:
        """Return the encoder of videos, or None if they can only be shown as frames."""
        vision = transformers.AutoConfig.from_pretrained(model).vision_config
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
    image_processor.size = size  # both edges hold pixel counts, Qwen's use of these names
