"""Defines TRL's GRPO trainer with episodes that visenv plays.

It supports every environment, and images in any turn. TRL does everything after sampling: rewards
and their scaling, the loss, the reference model, the optimizer, logging and checkpoints. Two of its
private methods are overridden, because TRL has no public way to use images that an environment
returns. Therefore only one version of TRL is supported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
import trl
from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.policy import EnginePolicy, Policy, Session, TrainablePolicy
from visenv.private_names import TESTED_VERSIONS, check_private_names
from visenv.rollout import Collector, Env, EpisodeSpec, Executor
from visenv.types import Episode, Group, Reply, Sampling, TurnRequest

from ...trainer.metrics import measure
from .formats import blank, conversation, opening, to_pil, to_trl
from .model import Attention, ban, parts
from .private_names import TRAINER_NAMES

_LEFT_ALONE: Mapping[str, Any] = {
    "use_vllm": False,
    "use_transformers_continuous_batching": False,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": None,
    "repetition_penalty": 1.0,
    "generation_kwargs": None,
    "mask_truncated_completions": False,
}
"""Options that must keep their defaults.

Most of them belong to TRL's own sampling, which is not used. One of them treats every turn that
ends by a stop string as truncated.
"""


class FreePolicy(Policy[Session]):
    """Samples the turns of a policy without the regular expression of `TurnRequest.regex`.

    visenv's own trainer computes the log-probability of a constrained token over the allowed
    tokens. Other trainers compute it over all tokens, and would train the model on choices that
    were forced.

    Args:
        policy: The policy that plays.
    """

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy

    @override
    def open(self, seed: int) -> Session:
        session: Session = self._policy.open(seed)
        return session

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        return await self._policy.respond(session, request._replace(regex=None), sampling)

    @override
    def close(self) -> None:
        self._policy.close()


def environment_reward(episode: Sequence[Episode], **_: Any) -> list[float | None]:
    """Return the reward of each episode, or None for aborted episodes, which TRL leaves out."""
    return [None if each.status == "aborted" else each.reward for each in episode]


class VisenvGRPOTrainer(GRPOTrainer):
    """Trains a visenv policy with TRL's GRPO.

    ::

        policy = load("policy", "transformers")("Qwen/Qwen2.5-VL-3B-Instruct", device="cuda")
        trainer = VisenvGRPOTrainer(
            policy,
            lambda: gym.make("visenv/ZoomVQA-v0"),
            args=GRPOConfig(...),
            train_dataset=rows(range(10_000)),
        )
        trainer.train()

    TRL trains the model of the policy. Turns are sampled without the regular expressions of the
    environment (`FreePolicy`). An aborted episode is masked and left out of the baseline of its
    group; its row still counts if the loss is a mean over rows (``loss_type="grpo"``). Reward
    functions receive the `Episode` of each row as ``episode``.

    Args:
        policy: The policy that is trained, with a transformers model.
        make_env: A function that creates the environment.
        args: The configuration of TRL. Options of TRL's sampling have no effect and are refused.
        train_dataset: The data set, created by `rows`.
        sampler: An engine that samples instead of `policy` and receives its weights; TRL's
            importance correction for vLLM is then applied.
        turn_tokens: The maximum number of sampled tokens in a turn.
        concurrency: The maximum number of episodes that are played concurrently.
        executor: Determines where environments run; by default in this process, one call at a time.
        retries: The number of times that an aborted episode is played again.
        reward_funcs: Reward functions that TRL adds to the reward of the environment.
        **others: Other arguments of `GRPOTrainer`.

    Raises:
        ConfigurationError: If the version of TRL is not the tested one, an option without effect is
            set, or `sampler` and `policy` process images differently.
    """

    def __init__(
        self,
        policy: TrainablePolicy[Any],
        make_env: Callable[[], Env],
        args: GRPOConfig,
        train_dataset: Dataset,
        *,
        sampler: EnginePolicy[Any] | None = None,
        turn_tokens: int = 512,
        concurrency: int = 128,
        executor: Executor | None = None,
        retries: int = 0,
        reward_funcs: Sequence[Callable[..., list[float | None]]] = (),
        **others: Any,
    ) -> None:
        _check_version()
        check_private_names(TRAINER_NAMES)
        _check_options(args, others)
        model, codec = parts(policy)
        if sampler is not None:
            sampler.check_image_processor(policy)
        self.policy = policy
        self.sampler = sampler
        self._attention = Attention(model)
        self._filler = int(codec.end_id)
        ban(model, codec.banned)
        super().__init__(
            model=model,
            reward_funcs=[environment_reward, *reward_funcs],
            args=args,
            train_dataset=train_dataset,
            processing_class=codec.processor,
            **others,
        )
        if self.ref_model is not None:
            ban(self.accelerator.unwrap_model(self.ref_model), codec.banned)
        self._collector = Collector(
            make_env,
            FreePolicy(policy if sampler is None else sampler),
            Sampling(args.temperature, turn_tokens),
            concurrency,
            executor=executor,
            retries=retries,
        )
        self._episodes: list[Episode] = []
        # These two attributes make TRL use images of tools, and correct for a sampling engine.
        self.tools = [make_env]
        self.use_vllm = sampler is not None

    @override
    def train(self, *args: Any, **options: Any) -> Any:
        """Train with TRL, then close the environments."""
        try:
            return super().train(*args, **options)
        finally:
            self._collector.close()

    @override
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Play the episodes of the rows; TRL scores the output of `_generate`."""
        self._episodes = self._play(inputs)
        played = zip(inputs, self._episodes, strict=True)
        shown = [row | {"prompt": opening(each), "episode": each} for row, each in played]
        batch: dict[str, Any] = super()._generate_and_score_completions(shown)
        return batch

    @override
    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Return the episodes in the form of TRL's own generation, one row for each prompt."""
        rows = [
            blank(self._filler) if each.status == "aborted" else to_trl(each)
            for each in self._episodes
        ]
        images = [[to_pil(image) for image in row["images"]] for row in rows]
        return (
            [row["prompt_ids"] for row in rows],
            [row["completion_ids"] for row in rows],
            [row["env_mask"] for row in rows],
            [conversation(each) for each in self._episodes],
            [row["logprobs"] for row in rows],
            {},
            images if any(images) else None,
            images,
        )

    def _play(self, inputs: Sequence[Mapping[str, Any]]) -> list[Episode]:
        training = cast("torch.nn.Module", self.model).training
        size = cast("int", self.num_generations if training else self.num_generations_eval)
        before = self.accelerator.process_index * len(inputs)
        places = []
        for number, row in enumerate(inputs, start=before):
            group, member = divmod(number, size)
            places.append(EpisodeSpec(int(row["seed"]), group, member, row.get("index")))
        with self._sampling():
            episodes = self._collector.episodes(places)
        self._note(episodes)
        return episodes

    @contextmanager
    def _sampling(self) -> Iterator[None]:
        """Gather the weights in evaluation mode inside the block, and send them to the engine."""
        from trl.models.utils import unwrap_model_for_generation

        trained = cast("torch.nn.Module", self.model)
        training, args = trained.training, cast("Any", self.args)
        gathered = unwrap_model_for_generation(
            self.model_wrapped,
            self.accelerator,
            gather_deepspeed3_params=args.ds3_gather_for_generation,
            gradient_checkpointing_kwargs=args.gradient_checkpointing_kwargs,
        )
        with self._attention.own(), gathered, torch.no_grad():
            self.policy.updated()
            self.policy.train_mode(False)
            if self.sampler is not None:
                self.sampler.wake()
                self.sampler.load(self.policy.named_weights(), self.policy.version)
            yield
        if self.sampler is not None:
            self.sampler.sleep()
        trained.train(training)

    def _note(self, episodes: Sequence[Episode]) -> None:
        """Add the metrics of visenv's own trainer to TRL's log."""
        groups: dict[int, Group] = {}
        for episode in episodes:
            groups[episode.group] = [*groups.get(episode.group, ()), episode]
        for name, value in measure(list(groups.values())).items():
            self._log_metric(name if "/" in name else f"episodes/{name}", value)


def _check_version() -> None:
    tested = TESTED_VERSIONS["trl"][0].rsplit(".", 1)[0]
    if trl.__version__.rsplit(".", 1)[0] != tested:
        raise ConfigurationError(
            f"VisenvGRPOTrainer overrides private methods of TRL {tested}, and this is TRL "
            f"{trl.__version__}: install trl=={tested}.*, or use environment_factory or visenv's "
            "own trainer."
        )


def _check_options(args: GRPOConfig, others: Mapping[str, Any]) -> None:
    for name, value in _LEFT_ALONE.items():
        if getattr(args, name) != value:
            raise ConfigurationError(
                f"{name}={getattr(args, name)!r} has no effect here, because the episodes are "
                f"sampled by visenv: leave it at {value!r}."
            )
    ways = {"tools", "rollout_func", "environment_factory", "processing_class", "model"} & {*others}
    if ways:
        raise ConfigurationError(
            f"VisenvGRPOTrainer plays the episodes with the model of the policy: omit {ways}."
        )
