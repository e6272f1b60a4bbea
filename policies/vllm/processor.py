"""Defines the logits processor in vLLM's workers: banned tokens, regular expressions, stop strings.

vLLM 0.26 to 0.31 apply processors of this kind, which change the argmax, before the
log-probabilities of ``logprobs_mode="processed_logprobs"``: recorded values are relative to the
allowed tokens, at the sampling temperature. The second model runner of vLLM has another interface,
and is disabled (`environment`).

Stop strings are detected here and not by vLLM's own `stop`, which does not consider regular
expressions and decodes every token of every request. After a stop string, only the end token is
allowed, which the policy drops: this costs one step per turn instead of decoding each token.
"""

from __future__ import annotations

from typing import Any

import torch
from typing_extensions import override

from visenv.private_names import check_private_names

from .private_names import PROCESSOR_NAMES, WORKER_NAMES
from .request import ARGUMENT
from .rules import TokenRules, TurnState, rules_of

check_private_names(PROCESSOR_NAMES)  # before they are imported

from vllm.v1.sample.logits_processor import LogitsProcessor  # noqa: E402
from vllm.v1.sample.logits_processor.builtin import process_dict_updates  # noqa: E402


class BatchRow:
    """Holds a request of the batch that has stop strings or a regular expression.

    Args:
        state: The state of its turn.
        output: The sampled tokens of the request; vLLM appends to this list object.
    """

    def __init__(self, state: TurnState, output: list[int]) -> None:
        self._state = state
        self._output = output
        self._taken = 0

    def allowed(self) -> torch.Tensor | None:
        """Return the allowed next tokens, after those sampled since the last call."""
        for token in self._output[self._taken :]:
            self._state.take(token)
        self._taken = len(self._output)
        return self._state.allowed()


class TurnProcessor(LogitsProcessor):
    """Masks the tokens that `TokenRules` forbid. vLLM creates it in each worker, by its name.

    Raises:
        ConfigurationError: If vLLM lacks a private name that is used in its workers.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        check_private_names(WORKER_NAMES)
        self._rules: TokenRules = rules_of(vllm_config.model_config)
        self._banned = self._rules.banned.to(device)
        self._rows: dict[int, BatchRow] = {}

    @override
    def is_argmax_invariant(self) -> bool:
        """Return False, because greedy sampling is also masked."""
        return False

    @override
    def update_state(self, batch_update: Any) -> None:
        """Track requests that are added, removed and moved within the batch."""
        process_dict_updates(self._rows, batch_update, self._row)

    @override
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask logits, ``[rows, vocabulary]``, in place."""
        logits.masked_fill_(self._banned, -torch.inf)
        bound = {row: turn.allowed() for row, turn in self._rows.items()}
        masks = {row: mask for row, mask in bound.items() if mask is not None}
        if masks:
            rows = list(masks)
            # [bound rows, vocabulary]
            allowed = torch.stack([masks[row] for row in rows]).to(logits.device)
            logits[rows] = logits[rows].masked_fill(~allowed, -torch.inf)
        return logits

    def _row(self, params: Any, prompt: list[int] | None, output: list[int]) -> BatchRow | None:
        turn = (params.extra_args or {}).get(ARGUMENT)
        if turn is None:
            return None
        state = self._rules.start(turn["stop"], turn["regex"])
        said: int = turn["said"]
        for token in (prompt or [])[-said:] if said else ():
            state.take(token)
        return BatchRow(state, output)
