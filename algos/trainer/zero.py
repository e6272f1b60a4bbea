"""Implements ZeRO stages 1 to 3 of DeepSpeed as a `TrainingBackend`.

In DeepSpeed 0.19.8, `engine.backward` reduces the gradients of each micro-batch, and `engine.step`
updates the weights at the boundary that `set_gradient_accumulation_boundary` marked. DeepSpeed
skips an optimizer step whose norm is not finite. This backend uses this behavior to refuse a step.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import deepspeed
import torch
from accelerate.utils import DummyOptim
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policy import Policy, TokenScores, TrainablePolicy
from visenv.private_names import check_private_names

from .backend import Accept, TrainingBackend, make_optimizer, parameter_groups
from .config import OptimizationConfig
from .distributed import DistributedContext
from .optimizer_shards import load_shards, save_shard
from .private_names import ZERO_NAMES
from .zero_slots import PartedModule, frozen_config, is_in_parts, optimizer_slots

_DECIDED = ("gradient_clipping", "gradient_accumulation_steps", "train_micro_batch_size_per_gpu")
"""Options of DeepSpeed that the run sets, and that a configuration must not contain."""


class ZeroBackend(TrainingBackend):
    """Shards optimizer state and gradients over the processes, and in stage 3 also weights.

    The module must call its submodules equally often on all processes, for any input.

    Args:
        policy: The policy that is trained.
        optimization: The settings of the optimizer; DeepSpeed clips the gradients.
        processes: The processes of the run.

    Raises:
        ConfigurationError: If the configuration of DeepSpeed contradicts the run, or the installed
            DeepSpeed lacks a private name that is used here.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        optimization: OptimizationConfig,
        processes: DistributedContext,
    ) -> None:
        check_private_names(ZERO_NAMES)
        self._policy = policy
        self._processes = processes
        accelerator = processes.accelerator
        config = self._config = accelerator.deepspeed_plugin.deepspeed_config
        self._told = {name: config.get(name, "auto") for name in _DECIDED}
        self._stage = _configure(config, optimization)
        self.partitioned = self._stage == 3
        own = "optimizer" in config
        optimizer: Any = (
            DummyOptim(parameter_groups(policy, optimization), optimization.learning_rate)
            if own
            else make_optimizer(policy, optimization)
        )
        self._module = PartedModule(policy.module)
        self._held: dict[int, tuple[Any, PartedModule]] = {}  # engines of references
        self._engine, self._optimizer = accelerator.prepare(policy.module, optimizer)
        self._accept: Accept = lambda _: True
        self._norm = math.nan
        self._guard()

    # ------------------------------------------------------------------------ a step

    @override
    def __call__(self, collated: Any) -> TokenScores:
        scores: TokenScores = self._engine(collated)
        return scores

    @override
    def begin(self, learning_rate: float) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate

    @override
    @contextmanager
    def micro_batch(self, *, last: bool) -> Iterator[None]:
        self._engine.set_gradient_accumulation_boundary(is_boundary=last)
        yield

    @override
    def backward(self, loss: torch.Tensor) -> None:
        """Compute gradients, which DeepSpeed averages over processes.

        The method `backward` of accelerate would also take the optimizer step, before the norm is
        known.
        """
        self._engine.backward(loss * self._processes.count)

    @override
    def step(self, accept: Accept) -> float:
        self._accept = accept
        self._norm = math.nan  # remains NaN if DeepSpeed finds infinities before it computes a norm
        level = deepspeed.utils.logger.level
        deepspeed.utils.logger.setLevel(logging.ERROR)  # hides its report of an overflow
        try:
            self._engine.step()
        finally:
            deepspeed.utils.logger.setLevel(level)
        return self._norm

    def _guard(self) -> None:
        """Call `accept` between the norm and the update, and replace a refused norm by NaN."""
        optimizer = self._engine.optimizer
        name = "_get_norm_groups" if self.partitioned else "scaled_global_norm"
        compute: Callable[..., Any] = getattr(optimizer, name)

        def asking(*arguments: Any, **options: Any) -> Any:
            computed = compute(*arguments, **options)
            # Stage 2: one norm of all weights, []. Stage 3: a list of norms, one for each group.
            groups = computed if isinstance(computed, list) else [computed]
            norms = [float(each) for each in groups]
            valid = all(each >= 0 and math.isfinite(each) for each in norms)  # invalid ones are -1
            self._norm = math.hypot(*norms) / float(optimizer.loss_scale) if valid else math.nan
            if self._accept(self._norm):
                return computed
            refused = [torch.full_like(each, math.nan) for each in groups]
            return refused if isinstance(computed, list) else refused[0]

        setattr(optimizer, name, asking)

    # ----------------------------------------------------------------------- weights

    @override
    def gather_params(
        self, parameters: Sequence[torch.nn.Parameter]
    ) -> AbstractContextManager[None]:
        if not self.partitioned:
            return nullcontext()
        gathered: AbstractContextManager[None] = deepspeed.zero.GatheredParameters(list(parameters))
        return gathered

    @override
    @contextmanager
    def playing(self, player: Policy[Any]) -> Iterator[None]:
        """Gather all weights on every device, without the hooks that would shard them again.

        If an engine samples, nothing is gathered.
        """
        if not self.partitioned or player is not self._policy:
            yield
            return
        offload = self._engine.optimizer.parameter_offload
        parameters = list(self._engine.module.parameters())
        offload.destroy()
        offload.forward_hooks, offload.backward_hooks = [], []
        try:
            with self.gather_params(parameters):
                yield
        finally:
            for parameter in parameters:
                parameter.ds_active_sub_modules.clear()
            offload.setup_zero_stage3_hooks()

    @override
    def hold(self, reference: TrainablePolicy[Any]) -> None:
        """Hold the reference, which is partitioned in stage 3.

        A reference that is the trained model without its adapters is held with the trained model.
        """
        own = {id(parameter) for parameter in self._engine.module.parameters()}
        parameters = reference.module.parameters()
        if not self.partitioned or any(id(parameter) in own for parameter in parameters):
            return
        module = PartedModule(reference.module)
        engine, *_ = deepspeed.initialize(
            model=reference.module, config=frozen_config(self._config)
        )
        self._held[id(reference.module)] = engine, module

    @override
    def refer(self, reference: TrainablePolicy[Any], collated: Any) -> TokenScores:
        engine, _ = self._held.get(id(reference.module), (reference.module, None))
        with torch.no_grad():
            scores: TokenScores = engine(collated)
        return scores

    @override
    @contextmanager
    def reading(self, policy: TrainablePolicy[Any] | None = None) -> Iterator[None]:
        """Copy, in stage 3, one weight after another to the main memory of the first process."""
        held: list[tuple[torch.nn.Parameter, torch.Tensor, torch.Tensor]] = []
        module = (policy or self._policy).module
        for parameter in module.parameters() if is_in_parts(module) else ():
            with self.gather_params([parameter]):
                # The complete weight; outside the block `parameter.data` is a shard or empty, [0].
                copy = parameter.detach().cpu().clone() if self._processes.first else None
            if copy is not None:
                held.append((parameter, parameter.data, copy))
        for parameter, _, copy in held:
            parameter.data = copy
        try:
            yield
        finally:
            for parameter, part, _ in held:
                parameter.data = part

    # ------------------------------------------------------------------- checkpoints

    @override
    def save(self, folder: Path) -> None:
        """Write the optimizer's shard of each process."""
        processes = self._processes
        slots = optimizer_slots(self._engine)
        save_shard(folder, slots, self._engine.optimizer.optimizer, processes.rank, processes.count)

    @override
    def load(self, folder: Path, policy: Path) -> None:
        optimizer = self._engine.optimizer
        if self.partitioned:
            optimizer.checkpoint_event_prologue()
        self._policy.load_weights(policy)
        load_shards(folder, optimizer_slots(self._engine), optimizer.optimizer, self.sizes())
        if self.partitioned:
            optimizer.checkpoint_event_epilogue()  # updates the complete copies of small weights

    @override
    def close(self) -> None:
        """Release the backend; a module that was loaded in shards remains sharded."""
        for engine, module in (*self._held.values(), (self._engine, self._module)):
            module.release(engine)
        self._held.clear()
        self._processes.accelerator.free_memory()
        self._config.update(self._told)  # the next run of this process may have other settings


def _configure(config: dict[str, Any], optimization: OptimizationConfig) -> int:
    """Write the settings of `OptimizationConfig` into DeepSpeed's, and return the ZeRO stage."""
    stage = config.get("zero_optimization", {}).get("stage")
    if stage not in (1, 2, 3):
        raise ConfigurationError(
            f"zero_optimization.stage must be 1, 2 or 3, got {stage!r}; for data parallelism "
            "without sharding, launch without DeepSpeed."
        )
    if config.get("bf16", {}).get("enabled") is True:
        if stage == 1:
            raise ConfigurationError(
                "ZeRO-1 is refused with bf16, for which DeepSpeed has another optimizer. Use stage "
                "2."
            )
        # Gradients of many micro-batches are summed; in bf16, small gradients would be lost.
        config.setdefault("data_types", {}).setdefault("grad_accum_dtype", "fp32")
    offload = config["zero_optimization"].get("offload_optimizer") or {}
    if offload.get("device") == "nvme":
        raise ConfigurationError(
            "An optimizer on NVMe is refused, because checkpoints read its state from memory. "
            'Offload it to "cpu".'
        )
    if config.get("fp16", {}).get("enabled") is True:
        raise ConfigurationError(
            "fp16 is refused, because its loss scaling skips steps silently. Use bf16 or float32."
        )
    # The run determines the micro-batches and the optimizer steps.
    for name, value in zip(_DECIDED, (optimization.max_grad_norm, 1, 1), strict=True):
        if config.get(name, "auto") not in ("auto", value):
            raise ConfigurationError(
                f"DeepSpeed's {name} is {config[name]!r}, but this run sets it to {value}: "
                'leave it out of the configuration, or write "auto".'
            )
        config[name] = value
    if "optimizer" in config:
        told = {"betas": [optimization.beta1, optimization.beta2], "weight_decay": 0.0}
        config["optimizer"].setdefault("params", {}).update(told)
    return int(stage)
