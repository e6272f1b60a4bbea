"""Adapts the model of a policy, so that TRL computes the same log-probabilities as the policy."""

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
"""The logit of a banned token, whose probability is then 0.

TRL subtracts the log-probabilities of such tokens under two models in the messages of the
environment, before it masks them. With a value of larger magnitude, the rounding error of the
difference could be so large that its exponential is infinite.
"""


def parts(policy: TrainablePolicy[Any]) -> tuple[Any, Any]:
    """Return the transformers model of a policy, and its `Codec`.

    Raises:
        ConfigurationError: If the policy has no transformers model, or it is of another type than
            Qwen2.5-VL and Qwen3-VL.
    """
    run: Any = policy
    try:
        model, codec = run.network.model, run.codec
    except AttributeError as error:
        raise ConfigurationError(
            "TRL trains transformers models; pass a policy with such a model "
            f'(load("policy", "transformers")), not {type(policy).__name__}.'
        ) from error
    if not codec.family.packs:
        raise ConfigurationError(
            "The bridge to TRL supports Qwen2.5-VL and Qwen3-VL, and this is a "
            f"{codec.family.name} model: use visenv's own trainer."
        )
    return model, codec


def ban(model: Any, banned: NDArray[np.bool_]) -> None:
    """Add a bias to the head of a model that sets the probability of banned tokens to 0.

    TRL's loss uses the weight and the bias of the head, and does not support banned tokens. The
    bias is not a parameter and is not saved, so the checkpoint remains a standard one.

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
    """Switches the language model of a policy between two attention implementations.

    The policy has its own implementation, which is faster for its packed batches and does not
    support padding. TRL pads on the left, so it uses the implementation of PyTorch.

    Args:
        model: The model that policy and TRL share.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own = model.config.get_text_config()._attn_implementation  # noqa: SLF001 - has no other name
        self._set("sdpa")

    @contextmanager
    def own(self) -> Iterator[None]:
        """Use the attention of the policy inside the block, for sampling."""
        self._set(self._own)
        try:
            yield
        finally:
            self._set("sdpa")

    def _set(self, name: str) -> None:
        self._model.set_attn_implementation({"text_config": name})
