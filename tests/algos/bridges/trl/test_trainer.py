"""Tests our episodes in TRL's own trainer: its losses and gradients equal those of our trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

from tests.algos.bridges import judged
from visenv.errors import ConfigurationError
from visenv.grammar import ToolCallGrammar
from visenv.policy import EnginePolicy
from visenv.registration import load
from visenv.types import Episode, Failure, Reply, Sampling, TurnRequest

pytestmark = [
    pytest.mark.component("trl", "torch", "transformers", "tensorboard"),
    # These are warnings between TRL, transformers and torch.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]

torch = pytest.importorskip("torch")
Config = Callable[..., Any]


def _trainer(policy: Any, config: Any, make_env: Callable[[], Any], **options: Any) -> Any:
    from visenv.algos.bridges.trl import VisenvGRPOTrainer, rows

    return VisenvGRPOTrainer(policy, make_env, config, rows(range(8)), turn_tokens=5, **options)


def _rows(trainer: Any, groups: int) -> list[dict[str, Any]]:
    size = trainer.num_generations
    return [dict(trainer.train_dataset[n // size]) for n in range(groups * size)]


def _batch(trainer: Any, groups: int = 2) -> dict[str, Any]:
    """Return TRL's batch for its loss, made from the rows of its own sampler."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    batch: dict[str, Any] = trainer._prepare_inputs(_rows(trainer, groups))
    return batch


def _gradients(policy: Any) -> dict[str, Any]:
    named = policy.network.model.named_parameters()
    return {name: each.grad.clone() for name, each in named if each.grad is not None}


def _ours(policy: Any, algorithm: Any, episodes: Sequence[Episode]) -> float:
    """Return our algorithm's loss on groups of three; leave its gradient in the parameters."""
    from visenv.algorithm import Batch

    groups = [episodes[start : start + 3] for start in range(0, len(episodes), 3)]
    advantages = [float(each) for group in algorithm.advantages(groups) for each in group]
    segments = [episode.segments[0] for episode in episodes]
    images = {image.sha256: image for episode in episodes for image in episode.images}
    policy.network.model.zero_grad()
    scores = policy.score(segments, images)
    width = scores.mask.shape[1]
    old = torch.tensor(
        np.stack([np.pad(each.logprobs, (0, width - len(each))) for each in segments])
    )
    batch = Batch(
        logprobs=scores.logprobs,
        old_logprobs=old,
        sampling_logprobs=old,
        reference_logprobs=None,
        entropy=scores.entropy,
        advantages=torch.tensor(advantages)[:, None].expand(-1, width),
        mask=scores.mask,
        episode_tokens=scores.mask.sum(-1),
        total_tokens=int(scores.mask.sum()),
        total_episodes=len(episodes),
    )
    loss = algorithm.loss(batch).value
    loss.backward()
    return float(loss.detach())


@pytest.mark.parametrize("loss", ["grpo", "dapo"])
def test_loss_and_gradients_are_ours(loss: str, policy: Any, config: Config, pictures: Any) -> None:
    trainer = _trainer(policy, config(loss_type=loss), pictures.Pictures)
    batch = _batch(trainer)
    assert batch["num_images"] == [pictures.TURNS] * 6
    assert len(set(batch["advantages"].tolist())) > 2, "all alike would prove nothing"
    theirs = trainer._compute_loss(trainer.model, batch)
    theirs.backward()
    expected = _gradients(policy)
    with trainer._attention.own():
        value = _ours(policy, load("algorithm", loss)(), trainer._episodes)
    assert float(theirs.detach()) == pytest.approx(value, abs=1e-5)
    gradients = _gradients(policy)
    assert gradients.keys() == expected.keys()
    largest = max(float(each.abs().max()) for each in expected.values())
    assert largest > 1e-3, "the comparison below is of something"
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-5, msg=name)


def test_batch_is_the_episodes_token_by_token(policy: Any, config: Config, pictures: Any) -> None:
    trainer = _trainer(policy, config(), pictures.Pictures)
    played = trainer._generate_and_score_completions(_rows(trainer, 2))
    for row, episode in enumerate(trainer._episodes):
        (segment,) = episode.segments
        shown, said = played["prompt_mask"][row].bool(), played["completion_mask"][row].bool()
        tokens = torch.cat([played["prompt_ids"][row][shown], played["completion_ids"][row][said]])
        assert tokens.tolist() == segment.token_ids.tolist()
        start = int(shown.sum())
        assert played["tool_mask"][row][said].tolist() == segment.loss_mask[start:].tolist()
        logprobs = played["sampling_per_token_logps"][row][said]
        assert logprobs.tolist() == segment.logprobs[start:].tolist()
        types = torch.cat([torch.zeros(1), played["mm_token_type_ids"][row]])[1:]
        pads = torch.cat([played["prompt_ids"][row], played["completion_ids"][row]])
        assert torch.equal(types == 1, pads == policy.codec.image_id)
    spans = [span for episode in trainer._episodes for span in episode.segments[0].images]
    images = {image.sha256: image for episode in trainer._episodes for image in episode.images}
    grids = [policy.codec.family.images.grid(images[span.sha256]) for span in spans]
    assert played["image_grid_thw"].tolist() == [list(grid) for grid in grids]
    assert len(played["pixel_values"]) == sum(span.patches for span in spans)


def test_members_share_the_sample_and_speak_for_themselves(
    policy: Any, config: Config, pictures: Any
) -> None:
    trainer = _trainer(policy, config(), pictures.Pictures)
    trainer._generate_and_score_completions(_rows(trainer, 2))
    samples = [episode.sample_id for episode in trainer._episodes]
    assert samples == ["picture 0"] * 3 + ["picture 1"] * 3
    first = [episode.images[0].sha256 for episode in trainer._episodes]
    assert len(set(first[:3])) == 1
    assert first[0] != first[3]
    assert len({episode.turns[0].text for episode in trainer._episodes[:3]}) > 1


def test_steps_change_the_weights_and_count_the_versions(
    policy: Any, config: Config, pictures: Any
) -> None:
    before = {name: each.clone() for name, each in policy.network.model.named_parameters()}
    trainer = _trainer(policy, config(logging_steps=1), pictures.Pictures)
    trainer.train()
    changed = [
        name
        for name, each in policy.network.model.named_parameters()
        if not torch.equal(each, before[name])
    ]
    assert any("visual" in name for name in changed)
    assert any("language_model" in name for name in changed)
    assert policy.version == 2
    first = trainer.state.log_history[0]
    assert first["reward"] == pytest.approx(first["episodes/reward"])
    assert first["episodes/turns"] == pictures.TURNS
    assert first["episodes/aborted"] == 0


def test_aborted_episode_teaches_nothing_and_moves_no_baseline(
    policy: Any, config: Config, pictures: Any
) -> None:
    calls: list[int] = []

    def trouble(seed: int, turn: int) -> None:
        calls.append(turn)
        if turn == 0 and calls.count(0) in (2, 4, 5):  # one of the first group, two of the second
            raise RuntimeError("the simulator died")

    trainer = _trainer(policy, config(), lambda: pictures.Pictures(trouble), concurrency=1)
    batch = trainer._generate_and_score_completions(_rows(trainer, 2))
    aborted = [episode.status == "aborted" for episode in trainer._episodes]
    assert aborted == [False, True, False, True, True, False]
    rewards = [episode.reward for episode in trainer._episodes]
    a, b = rewards[0], rewards[2]
    assert a != b
    # half the distance of the two left members; their sample deviation is |a - b| / sqrt 2
    half, deviation = (a - b) / 2, abs(a - b) / 2**0.5
    advantage = half / (deviation + 1e-4)
    expected = [advantage, 0, -advantage, 0, 0, 0]  # a single member has no baseline
    assert batch["advantages"].tolist() == pytest.approx(expected, abs=1e-5)
    assert [int(row.sum()) > 0 for row in batch["tool_mask"] * batch["completion_mask"]] == [
        not each for each in aborted
    ]
    assert batch["num_images"] == [0 if each else pictures.TURNS for each in aborted]


def test_episode_that_a_wrapper_truncates_is_exported_as_it_was_played(
    policy: Any, config: Config, pictures: Any
) -> None:
    def make_env() -> Any:
        limited = gym.wrappers.TimeLimit(pictures.Pictures(), 1)
        return gym.wrappers.TransformReward(limited, lambda reward: float(reward) + 10)

    trainer = _trainer(policy, config(), make_env)
    trainer.model.train()
    batch = trainer._generate_and_score_completions(_rows(trainer, 2))
    for row, episode in enumerate(trainer._episodes):
        assert (episode.status, episode.reason, len(episode.turns)) == ("truncated", "wrapper", 1)
        assert episode.reward == len(episode.turns[0].text) % 7 / 4 + 10
        (segment,) = episode.segments
        assert int(batch["tool_mask"][row].sum()) == segment.loss_mask.sum()
    assert batch["num_images"] == [1] * 6
    rewards = np.array([episode.reward for episode in trainer._episodes]).reshape(2, 3)
    assert trainer._metrics["train"]["reward"][-1] == pytest.approx(rewards.mean())


@pytest.mark.parametrize("limit", [None, 2])  # deferred; called in the step of the time limit
def test_judges_that_answer_late_are_waited_for(
    limit: int | None, policy: Any, config: Config
) -> None:
    def make_env() -> Any:
        env = judged.make(turns=2)
        return env if limit is None else gym.wrappers.TimeLimit(env, limit)

    trainer = _trainer(policy, config(), make_env)
    trainer._generate_and_score_completions(_rows(trainer, 2))
    grammar = ToolCallGrammar()
    for episode in trainer._episodes:
        thoughts = [grammar.parse(turn.text).thought is not None for turn in episode.turns]
        assert episode.terms["thoughts"] == sum(thoughts) / len(thoughts)
        paid = episode.terms["right"] + 0.2 * episode.terms["looked"]
        assert episode.reward == pytest.approx(paid + 0.5 * episode.terms["thoughts"])


def test_judge_that_is_away_masks_its_episodes(policy: Any, config: Config) -> None:
    trainer = _trainer(policy, config(), partial(judged.make, judge=judged.away))
    batch = trainer._generate_and_score_completions(_rows(trainer, 1))
    failures = {episode.failure for episode in trainer._episodes}
    assert failures == {Failure("service", "judge", "away")}
    assert not (batch["tool_mask"] * batch["completion_mask"]).any()


def test_step_of_aborted_episodes_alone_changes_nothing(
    policy: Any, config: Config, pictures: Any
) -> None:
    before = [each.clone() for each in policy.parameters()]

    def trouble(seed: int, turn: int) -> None:
        raise OSError("gone")

    _trainer(policy, config(max_steps=1), lambda: pictures.Pictures(trouble)).train()
    assert all(torch.equal(a, b) for a, b in zip(before, policy.parameters(), strict=True))


def test_reward_functions_are_shown_the_episodes(
    policy: Any, config: Config, pictures: Any
) -> None:
    def turns(episode: Sequence[Episode], completions: Any, **_: Any) -> list[float | None]:
        texts = [[m["content"] for m in each if m["role"] == "assistant"] for each in completions]
        assert texts == [[turn.text for turn in each.turns] for each in episode]
        return [float(len(each.turns)) for each in episode]

    options = {"reward_funcs": [turns]}
    trainer = _trainer(policy, config(logging_steps=1, max_steps=1), pictures.Pictures, **options)
    trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["rewards/turns/mean"] == pictures.TURNS
    assert logged["reward"] == pytest.approx(logged["episodes/reward"] + pictures.TURNS)


class Engine(EnginePolicy[Any]):
    """Samples with weights of its own, like vLLM; records calls of its methods."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.version, self.stale = 0, False
        self.told: list[str] = []

    @override
    def open(self, seed: int) -> Any:
        return self.inner.open(seed)

    @override
    async def respond(self, session: Any, request: TurnRequest, sampling: Sampling) -> Reply:
        reply: Reply = await self.inner.respond(session, request, sampling)
        return reply

    @override
    def load(self, weights: Any, version: int) -> None:
        self.told.append(f"load {version}")
        self.inner.network.model.load_state_dict(dict(weights))
        self.version = version

    @override
    def sleep(self) -> None:
        self.told.append("sleep")

    @override
    def wake(self) -> None:
        self.told.append("wake")


def test_engine_samples_with_the_weights_of_the_step_and_is_corrected(
    policy: Any, tiny: Path, config: Config, pictures: Any
) -> None:
    engine = Engine(load("policy", "transformers")(tiny, threads=1))
    trainer = _trainer(policy, config(), pictures.Pictures, sampler=engine)
    trainer.train()
    assert engine.told == ["wake", "load 1", "sleep", "wake", "load 2", "sleep"]
    batch = _batch(trainer)
    sampled = batch["tool_mask"] * batch["completion_mask"] == 1
    # both have the same weights, so their log-probabilities differ only by rounding
    torch.testing.assert_close(
        batch["importance_sampling_ratio"], torch.ones_like(batch["importance_sampling_ratio"])
    )
    reported = batch["sampling_per_token_logps"][sampled]
    torch.testing.assert_close(reported, batch["old_per_token_logps"][sampled])
    assert torch.isfinite(trainer._compute_loss(trainer.model, batch))


def test_reference_is_read_as_the_policy_is(policy: Any, config: Config, pictures: Any) -> None:
    trainer = _trainer(policy, config(beta=0.1, num_iterations=2), pictures.Pictures)
    batch = _batch(trainer)
    sampled = batch["tool_mask"] * batch["completion_mask"] == 1
    for name in ("ref_per_token_logps", "old_per_token_logps"):  # the weights are still the same
        torch.testing.assert_close(
            batch[name][sampled], batch["sampling_per_token_logps"][sampled], rtol=1e-4, atol=1e-4
        )
    with torch.no_grad():
        policy.network.model.lm_head.weight.mul_(1.1)  # simulate an update
    loss = trainer._compute_loss(trainer.model, batch)
    loss.backward()
    assert torch.isfinite(loss)
    assert trainer._metrics["train"]["kl"][-1] > 1e-3
    assert all(torch.isfinite(gradient).all() for gradient in _gradients(policy).values())


def test_forms_that_an_environment_asks_for_are_not_sampled(
    policy: Any, config: Config, pictures: Any
) -> None:
    class Formal(pictures.Pictures):  # type: ignore[misc]
        def step(self, action: str) -> Any:
            *rest, info = super().step(action)
            result = info["step"]
            if result.request is not None:
                result = result._replace(request=TurnRequest(regex="yes"))
            return (*rest, {**info, "step": result})

    trainer = _trainer(policy, config(), Formal)
    trainer._generate_and_score_completions(_rows(trainer, 1))
    assert {turn.text for e in trainer._episodes for turn in e.turns[1:]} != {"yes"}
    spans = [span for e in trainer._episodes for span in e.segments[0].turns]
    assert all(span.regex is None for span in spans)


def test_banned_tokens_have_no_probability_and_the_checkpoint_is_stock(
    policy: Any, config: Config, pictures: Any, tmp_path: Path
) -> None:
    import transformers

    trainer = _trainer(policy, config(), pictures.Pictures)
    model = policy.network.model
    logits = model(input_ids=torch.tensor([[30, 40, 50]])).logits
    banned = torch.from_numpy(policy.codec.banned)
    assert torch.softmax(logits, -1)[..., banned].sum() == 0
    trainer.save_model(str(tmp_path / "saved"))
    stock = transformers.AutoModelForImageTextToText.from_pretrained(tmp_path / "saved")
    assert stock.lm_head.bias is None
    assert torch.equal(stock.lm_head.weight, model.lm_head.weight)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"use_vllm": True}, "use_vllm"),
        ({"top_p": 0.9}, "top_p"),
        ({"generation_kwargs": {"max_new_tokens": 3}}, "generation_kwargs"),
        ({"mask_truncated_completions": True}, "mask_truncated_completions"),
    ],
)
def test_options_without_effect_are_refused(
    changes: Mapping[str, Any], word: str, policy: Any, config: Config, pictures: Any
) -> None:
    with pytest.raises(ConfigurationError, match=word):
        _trainer(policy, config(**changes), pictures.Pictures)


def test_trainer_refuses_other_ways_to_play_and_other_policies(
    policy: Any, config: Config, pictures: Any
) -> None:
    with pytest.raises(ConfigurationError, match="tools"):
        _trainer(policy, config(), pictures.Pictures, tools=[print])
    with pytest.raises(ConfigurationError, match="TRL trains transformers models"):
        _trainer(load("policy", "oracle")(), config(), pictures.Pictures)


def test_version_of_trl_that_is_not_tested_is_refused(
    policy: Any, config: Config, pictures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trl

    monkeypatch.setattr(trl, "__version__", "1.17.0")
    with pytest.raises(ConfigurationError, match=r"1\.16.*1\.17\.0"):
        _trainer(policy, config(), pictures.Pictures)


def test_group_of_one_is_refused_by_trl_itself(config: Config) -> None:
    with pytest.raises(ValueError, match="at least 2 generations"):
        config(num_generations=1)
