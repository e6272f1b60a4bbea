"""Trains the tokenizer of a tiny model on the texts of episodes of its environments.

The oracle, the first teacher and the random policy play a few hundred episodes with fixed seeds.
The words of their prompts, results and turns become one token each, so that a turn has 20 to 80
tokens. The tokenizer depends only on the environments: not on the seed of the weights, and not on
the number of processes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np
import transformers

from visenv.env import VisEnv
from visenv.errors import RunError
from visenv.registration import load
from visenv.rollout import Collector, Env, EpisodeSpec, Mixture
from visenv.seeding import seeds
from visenv.types import Episode, Malformed, Message, Turn
from visenv.worlds.recent import SAMPLES_AT_ONCE

CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
"""Qwen's own special tokens, with their original names."""

PRE_TOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizer splits text before its merges: words with their blank, and single digits."""

EPISODES = 128
"""Default number of episodes of each player."""

MOST_PIECES = 40
"""Maximum number of pieces of a turn's format that become one token each."""

_LEAST_SHARE = 0.05
"""Minimum share of the episodes in which a piece occurs."""

_PIECE = re.compile(r"</?\w+>|(?:\"?[\[\]{}, ]*\"\w+\": ?[\[{]*)+\"?(?!\w+\":)")
"""A tag, or keys of a JSON object with the signs around them."""

_SEED = 0x70CE
"""Seed of the episodes."""


class TokenizerTexts(NamedTuple):
    """Holds the training data of a tokenizer.

    Attributes:
        texts: The texts to learn merges from.
        pieces: Tags and keys of JSON objects that become one token each. They are not special
            tokens, because a parser must see them and a policy may write them.
    """

    texts: tuple[str, ...]
    pieces: tuple[str, ...]


def collect_texts(
    make_env: Callable[[], Env] | Mixture, episodes: int = EPISODES
) -> TokenizerTexts:
    """Play episodes, and return their texts.

    The turns of the random policy that the environment cannot parse are left out, because they are
    noise.

    Args:
        make_env: A function that makes an environment, or several environments.
        episodes: The number of episodes of each player, which are divided among the environments.

    Raises:
        RunError: If every episode is aborted. The message contains the reason of the first one.
    """
    mixture = make_env if isinstance(make_env, Mixture) else Mixture({"": make_env}, {"": 1.0})
    share = max(1, round(episodes / len(mixture.make_envs)))
    played: list[Episode] = []
    for name, make in mixture.make_envs.items():
        for player, found in _play(make, _seeds(share)).items():
            if all(episode.status == "aborted" for episode in found):
                named = f" of {name}" if name else ""
                raise RunError(
                    f"The tokenizer of the tiny model is trained on episodes, but every episode"
                    f"{named} of the {player} policy was aborted: {found[0].failure}"
                )
            played += found
    return texts_of(played)


def _play(make_env: Callable[[], Env], seeds: Sequence[int]) -> dict[str, list[Episode]]:
    """Return the episodes of each player; all players play the same seeds."""
    with ExitStack() as stack:
        collectors = {
            player: stack.enter_context(closing(Collector(make_env, load("policy", player)())))
            for player in _players(make_env)
        }
        played: dict[str, list[Episode]] = {player: [] for player in collectors}
        for start in range(0, len(seeds), SAMPLES_AT_ONCE):
            specs = [EpisodeSpec(seed) for seed in seeds[start : start + SAMPLES_AT_ONCE]]
            for player, collector in collectors.items():
                played[player] += collector.episodes(specs)
    return played


def _players(make_env: Callable[[], Env]) -> list[str]:
    env = make_env()
    try:
        base = env.unwrapped
        if not isinstance(base, VisEnv):
            return ["random"]
        return ["oracle"] * base.has_oracle + ["teacher"] * bool(base.teachers) + ["random"]
    finally:
        env.close()


def _seeds(count: int) -> list[int]:
    return seeds(np.random.SeedSequence(_SEED), count)


def texts_of(episodes: Sequence[Episode]) -> TokenizerTexts:
    """Return the texts of episodes, and the pieces that many of these episodes contain."""
    by_episode = [list(_texts(episode)) for episode in episodes]
    counts = Counter(
        piece
        for texts in by_episode
        for piece in sorted({piece for text in texts for piece in _PIECE.findall(text)})
    )
    least = max(2, _LEAST_SHARE * len(episodes))
    common = [(-count, piece) for piece, count in counts.items() if count >= least]
    pieces = tuple(piece for _, piece in sorted(common)[:MOST_PIECES])
    return TokenizerTexts(tuple(text for texts in by_episode for text in texts), pieces)


def _texts(episode: Episode) -> Iterator[str]:
    """Yield the texts of an episode as the chat template joins them, apart from its control tokens.

    An image ends a text, because the template puts control tokens there.
    """
    for turn in episode.turns:
        for message in turn.messages:
            yield from _texts_of_message(message)
        if _is_well_formed(turn):
            yield f"assistant\n{turn.text}"
    for message in episode.closing:
        yield from _texts_of_message(message)


def _texts_of_message(message: Message) -> Iterator[str]:
    text = f"{message.role}\n"
    for part in message.parts:
        if isinstance(part, str):
            text += part
        elif text:
            yield text
            text = ""
    if text:
        yield text


def _is_well_formed(turn: Turn) -> bool:
    return not any(isinstance(event, Malformed) for event in turn.events)


def build_tokenizer(vocab_size: int, texts: TokenizerTexts) -> Any:
    """Return a `Qwen2Tokenizer` that is trained on these texts; the result is deterministic.

    Args:
        vocab_size: The maximum number of tokens.
        texts: The texts and pieces.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.NFC()
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKENIZER), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(CONTROL_TOKENS) - len(texts.pieces),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    trained.train_from_iterator(_between_pieces(texts), trainer)
    learned = json.loads(trained.to_str())["model"]
    tokenizer = transformers.Qwen2Tokenizer(
        vocab=learned["vocab"],
        merges=[tuple(merge) for merge in learned["merges"]],  # type: ignore[misc]
        unk_token=None,  # type: ignore[arg-type]
        bos_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )
    added = [(token, True) for token in CONTROL_TOKENS]
    added += [(piece, False) for piece in texts.pieces]
    tokenizer.add_tokens(
        [
            transformers.AddedToken(text, special=special, normalized=False)
            for text, special in added
        ]
    )
    return tokenizer


def _between_pieces(texts: TokenizerTexts) -> Iterable[str]:
    """Return the texts without the pieces, at which a tokenizer splits a text before its merges."""
    longest_first = sorted(texts.pieces, key=len, reverse=True)
    pieces = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    return (part for text in texts.texts for part in pieces.split(text) if part)
