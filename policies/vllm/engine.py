"""Steps vLLM; no other file does. It is a narrow adapter for vLLM 0.26 (GPU) and 0.31 (CPU build).

The two versions differ as follows:

- 0.26 accepts raw prompts; later versions require the output of `Renderer.render_cmpl`, which both
  have.
- In 0.31, the in-process client shuts the engine down when it is garbage-collected, which destroys
  all process groups of the process: `_keep_process_groups` prevents this. 0.26 does not do this.
- The CPU build replaces `torch.set_num_threads` for the whole process, and both versions seed every
  global generator when they start: `_undisturbed` restores them.

`process_groups` handles the engine's process groups, and `launch` the variables of the launcher.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

from visenv.errors import PolicyError
from visenv.policy import Adapter
from visenv.private_names import check_private_names
from visenv.types import FinishReason, Video, Visual

from ..tokens.video import facts_of, pixels_of
from .adapter import AdapterSlot
from .launch import alone
from .private_names import ENGINE_NAMES
from .process_groups import WORLD
from .request import EngineOutput, EngineRequest
from .transfer import EXECUTOR, WeightTransfer, connect
from .weights import WeightUpdate, compare

_PATIENCE = 100
"""Number of attempts to empty the prefix cache while a last step ends."""

_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class Engine:
    """Wraps vLLM's `LLMEngine`. All methods except `render` must be called from one thread.

    Args:
        arguments: Arguments of vLLM's `EngineArgs`.
        end_id: The token that ends a turn.
        transfer: How weights are sent: ``"direct"``, ``"ipc"`` or ``"nccl"``.
        sleep_level: The sleep level of vLLM: 0 keeps its memory, 1 moves weights to the CPU, 2
            drops them.
        gpu: Index of its GPU among those that this process sees; None without a GPU, or with
            several GPUs.

    Attributes:
        version: Version of the weights, which is stored with sampled tokens.
        dtype: Type of its weights.
        packs: Whether it keeps packed copies of weights; see `WeightUpdate`.
        transfer: The transfer of weights to the engine.

    Raises:
        ConfigurationError: If vLLM or PyTorch lacks a private name that is used here.
        PolicyError: If vLLM cannot run this model.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        end_id: int,
        transfer: str,
        sleep_level: int,
        gpu: int | None,
    ) -> None:
        self.version = 0
        self._end_id = end_id
        self._names: dict[str, str] = {}  # our names -> vLLM's names
        self._left = False
        if gpu is not None:
            torch.cuda.set_device(gpu)  # for this thread: `InProcessExecutor` and transfers use it
        inside = arguments.get("distributed_executor_backend") == EXECUTOR
        with _undisturbed(gpu), alone(None if inside else gpu), WORLD.entered():
            self._engine = _start(arguments)
        # vLLM's `EngineCore` if it is in this process, else None.
        self._inner = getattr(self._engine.engine_core, "engine_core", None)
        if self._inner is not None:
            _keep_process_groups(self._engine.engine_core)
        config = self._engine.vllm_config
        self.dtype: torch.dtype = config.model_config.dtype
        self.packs = config.device_config.device_type == "cpu"
        self._sleep_level = 0 if self.packs else sleep_level
        self._whole = config.parallel_config.world_size == 1
        self.transfer: WeightTransfer = connect(self._engine, transfer)
        self._adapter = AdapterSlot(self._engine)

    @property
    def is_inside(self) -> bool:
        """Return whether the engine computes in this process."""
        return self._inner is not None

    @property
    def lost(self) -> bool:
        """Return whether the engine's own process has ended; vLLM monitors it."""
        resources = getattr(self._engine.engine_core, "resources", None)
        return bool(getattr(resources, "engine_dead", False))

    def fail_calls(self, error: PolicyError) -> None:
        """Raise an error in every call that waits for the engine's own process, which has ended.

        vLLM does not end these calls; their threads would wait for ever.
        """
        waiting = getattr(self._engine.engine_core, "utility_results", {})
        for call in list(waiting.values()):
            with suppress(InvalidStateError):
                call.set_exception(error)

    # ------------------------------------------------------------------ sampling

    def render(self, request: EngineRequest) -> Any:
        """Run the processors on items that vLLM has not cached.

        Return the prompt in vLLM's format.
        """
        prompt: dict[str, Any] = {"prompt_token_ids": request.token_ids}
        shown: dict[str, Sequence[Visual]] = {"image": request.images, "video": request.videos}
        shown = {kind: items for kind, items in shown.items() if items}
        if shown:
            prompt["multi_modal_data"] = {
                kind: [_item(item) for item in items] for kind, items in shown.items()
            }
            # An item with a name that vLLM knows is neither hashed nor processed nor sent again.
            prompt["multi_modal_uuids"] = {
                kind: [item.sha256 for item in items] for kind, items in shown.items()
            }
        (rendered,) = self._engine.renderer.render_cmpl([prompt])
        return rendered

    def add(self, name: str, rendered: Any, request: EngineRequest) -> None:
        """Add a request, which is sampled from the next step on."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            **request.parameters(self._end_id),
            flat_logprobs=True,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        self._names[name] = self._engine.add_request(
            name, rendered, parameters, lora_request=self._adapter.request
        )

    def step(self) -> list[tuple[str, EngineOutput]]:
        """Sample one token for each request that fits; return the requests that ended."""
        ended = []
        for output in self._engine.step():
            if self._names.pop(output.request_id, None) is not None:
                sampled = output.outputs[0]
                finish = _FINISH.get(sampled.finish_reason, "abort")
                prompt = output.prompt_token_ids
                logprobs = sampled.logprobs.logprobs
                piece = EngineOutput(
                    prompt, [*sampled.token_ids], [*logprobs], finish, self.version
                )
                ended.append((output.request_id, piece))
        return ended

    def interrupt(self) -> list[tuple[str, EngineOutput]]:
        """Abort every request; return the tokens of each so far."""
        states = self._engine.output_processor.request_states
        pieces = []
        for name, inner in self._names.items():
            state = states.get(inner)
            if state is not None:
                tokens = [*state.detokenizer.output_token_ids]
                logprobs = [*state.logprobs_processor.logprobs.logprobs]
                prompt = state.prompt_token_ids
                pieces.append((name, EngineOutput(prompt, tokens, logprobs, "abort", self.version)))
        self._engine.abort_request(list(self._names.values()), internal=True)
        self._names.clear()
        return pieces

    def abort(self, name: str) -> None:
        """Abort one request, if it still exists."""
        if inner := self._names.pop(name, None):
            self._engine.abort_request([inner], internal=True)

    # ------------------------------------------------------------------ weights and memory

    def load(self, delivery: WeightUpdate | None, adapter: Adapter | None = None) -> None:
        """Load weights, an adapter, or both; drop everything that was computed with other weights.

        Args:
            delivery: The weights; None keeps the current ones.
            adapter: The adapter; None samples with the weights alone.

        Raises:
            PolicyError: If a weight is wrong or missing, or the engine has other weights
                afterwards.
        """
        if delivery is not None:
            self._load_weights(delivery)
        if adapter is None:
            self._adapter.clear()
        else:
            self._adapter.put(adapter)
            self.forget()

    def _load_weights(self, delivery: WeightUpdate) -> None:
        self.transfer.send(delivery)
        self.forget()
        if problem := delivery.problem():
            raise PolicyError(f"These are not the model's weights: {problem}.")
        for held in self._engine.collective_rpc("visenv_sums"):
            compare(delivery.sums, held, self._whole)

    def forget(self) -> None:
        """Empty the caches of keys and values, of processed images, and of their features."""
        for _ in range(_PATIENCE):
            if self._engine.reset_prefix_cache():
                break
            self._settle()
        else:
            raise PolicyError(
                f"vLLM still uses cached keys and values after {_PATIENCE} attempts to drop them."
            )
        self._engine.reset_encoder_cache()
        self.forget_images()

    def _settle(self) -> None:
        """Wait for the end of a step that was in progress when its requests were aborted."""
        if self._inner is None:
            time.sleep(0.01)  # it ends on its own, in another process
        else:
            self._engine.step()

    def forget_images(self) -> None:
        """Empty only the cache of processed images."""
        self._engine.reset_mm_cache()

    def sleep(self) -> None:
        """Release memory, as far as the sleep level and the device permit."""
        self.forget()
        if self._sleep_level:
            self._engine.sleep(self._sleep_level)

    def wake(self) -> bool:
        """Allocate the memory again; return whether the weights were dropped."""
        if self._sleep_level:
            self._engine.wake_up()
        return self._sleep_level == 2

    def close(self) -> None:
        """Release the engine."""
        try:
            if self._inner is None:
                self.kill()
            else:
                self._inner.model_executor.shutdown()
        finally:
            # Ends the threads of the image processor; versions before 0.31 have no such method.
            getattr(self._engine.renderer, "shutdown", lambda: None)()
            if not self._left:
                self._left = True
                WORLD.leave()

    def kill(self) -> None:
        """Kill the engine's other processes; any thread may call this."""
        if self._inner is None:
            self._engine.engine_core.shutdown()


def _keep_process_groups(client: Any) -> None:
    """Prevent vLLM from destroying process groups, which the trainer and other engines also use."""
    if finalizer := getattr(client, "_finalizer", None):
        finalizer.detach()


def _start(arguments: Mapping[str, Any]) -> Any:
    check_private_names(ENGINE_NAMES)
    from vllm import EngineArgs
    from vllm.model_executor.layers import rotary_embedding
    from vllm.v1.engine.llm_engine import LLMEngine

    # vLLM shares these modules among the models of a process, and empties the modules of a model
    # during a transfer of weights: after a failed transfer, later engines would get an empty
    # module.
    rotary_embedding._ROPE_DICT.clear()  # noqa: SLF001
    try:
        return LLMEngine.from_engine_args(EngineArgs(**arguments))
    except (ValueError, TypeError, RuntimeError, OSError, AssertionError) as error:
        raise PolicyError(f"vLLM cannot run {arguments['model']}: {error!r}") from error


def _item(item: Visual) -> Any:
    """Return an image or a video in vLLM's format; vLLM then uses all frames of a video."""
    import PIL.Image

    if isinstance(item, Video):
        return pixels_of(item), facts_of(item) | {"do_sample_frames": False}
    return PIL.Image.fromarray(item.pixels)


@contextmanager
def _undisturbed(gpu: int | None) -> Iterator[None]:
    """Restore the global generators, the function for the number of threads, and the excepthook."""
    set_threads, hook = torch.set_num_threads, sys.excepthook
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global state is intended
    try:
        with torch.random.fork_rng([] if gpu is None else [gpu]):
            yield
    finally:
        torch.set_num_threads = set_threads
        sys.excepthook = hook  # that of torch.distributed prints a wrong rank
        random.setstate(states[0])
        with suppress(ValueError):
            np.random.set_state(states[1])  # noqa: NPY002
