"""A policy's model, made to be read by TRL as it is read by the policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from visenv.errors import ConfigurationError
from visenv.policy import TrainablePolicy

_NEVER = -1e4
"""The logit of a banned token. Its probability is 0, and yet TRL can subtract its log-probabilities
under two models, which it does where the environment spoke, before it masks the result: a larger
number would leave noise there whose exponential is infinite."""


def parts(policy: TrainablePolicy[Any]) -> tuple[Any, Any]:
    """Return the model of transformers that a policy runs, and its `Codec`.

    Raises:
        ConfigurationError: If the policy runs none.
    """
    run: Any = policy
    try:
        return run.network.model, run.codec
    except AttributeError as error:
        raise ConfigurationError(
            "TRL trains models of transformers; pass a policy that runs one "
            f'(load("policy", "transformers")), not {type(policy).__name__}.'
        ) from error


def ban(model: Any, banned: NDArray[np.bool_]) -> None:
    """Give the head of a model a bias that leaves tokens no probability.

    TRL's loss reads the head's weight and bias and knows no list of banned tokens. The bias is no
    parameter and is not saved: the checkpoint stays a stock one.

    Args:
        model: A causal language model of transformers, without a bias in its head.
        banned: bool ``[vocabulary]``, as `Codec.banned`.
    """
    head = model.get_output_embeddings()
    bias = torch.zeros(len(banned), dtype=head.weight.dtype, device=head.weight.device)
    bias[torch.from_numpy(banned).to(bias.device)] = _NEVER
    del head.bias
    head.register_buffer("bias", bias, persistent=False)


class Attention:
    """The attention of a policy's language model, of which there are two.

    The policy has one of its own, which is faster for what the policy does and is set by no one
    about padding. TRL pads on the left, and gets PyTorch's.

    Args:
        model: The model that both use.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own = model.config.get_text_config()._attn_implementation  # noqa: SLF001 - has no other name
        self._set("sdpa")

    @contextmanager
    def own(self) -> Iterator[None]:
        """Use the policy's own attention inside the block, for sampling."""
        self._set(self._own)
        try:
            yield
        finally:
            self._set("sdpa")

    def _set(self, name: str) -> None:
        self._model.set_attn_implementation({"text_config": name})
