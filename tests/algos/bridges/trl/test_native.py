"""Tests our tools in TRL's own rollout loop: schemas, images, rewards, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import pytest

from tests.algos.bridges import judged
from tests.tiny_models import tiny_model
from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.policies.scripted import ScriptedPolicy
from visenv.registration import load
from visenv.rollout import EpisodeSpec, play
from visenv.types import Failure, Truncated, Video

pytestmark = [
    pytest.mark.component("trl", "torch", "transformers", "tensorboard"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]

torch = pytest.importorskip("torch")

DOC: dict[str, Any] = {"preset": "tiny", "prompt": "brief"}
Message = dict[str, Any]


def _environment(env_id: str = "visenv/ArmDoc-v0", **options: Any) -> Any:
    from visenv.algos.bridges.trl import environment_factory

    return environment_factory(env_id, **(DOC | options))()


def _said(turn: ParsedTurn) -> Message:
    """Return a turn in the form that TRL's response template for Qwen3-VL parses."""
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
        for call in turn.calls
    ]
    answer = "" if turn.answer is None else f"<answer>{turn.answer}</answer>"
    message: Message = {"role": "assistant", "content": answer}
    if turn.thought is not None:
        message["reasoning_content"] = turn.thought
    return message | ({"tool_calls": calls} if calls else {})


def _play_oracle(environment: Any, seed: int) -> list[Message]:
    """Play an episode like TRL's loop, with a model that always generates the oracle's turns."""
    environment.reset(prompt=[], seed=seed)
    base, completion = environment.episode._base, []
    while True:
        message = _said(base.oracle_turn())
        completion.append(message)
        if "tool_calls" not in message:
            return completion
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            shown = getattr(environment, name)(**arguments)
            completion.append({"role": "tool", "name": name, "content": shown})


def _reward(environment: Any, completion: Sequence[Message]) -> float | None:
    from visenv.algos.bridges.trl import native_reward

    (reward,) = native_reward([completion], [environment])
    return reward


# ------------------------------------------------------------------------------------ tools


@pytest.mark.parametrize(
    "env_id", ["ArmZoom", "ArmDoc", "ArmIF", "ArmPreference", "ArmVQA", "ArmDocVQA"]
)
def test_tools_have_the_schema_of_their_model(env_id: str) -> None:
    from transformers.utils.chat_template_utils import get_json_schema

    environment = _environment(f"visenv/{env_id}-v0")
    tools = environment.episode._base.tools
    public = {name for name in vars(type(environment)) if not name.startswith("_")} - {"turns"}
    assert public == {*tools}
    for tool in tools.values():
        function = get_json_schema(getattr(environment, tool.name))["function"]
        model = tool.arguments.model_json_schema()
        assert (function["name"], function["description"]) == (tool.name, tool.description)
        taken = function["parameters"]
        assert taken["properties"].keys() == model["properties"].keys()
        assert taken.get("required", []) == model.get("required", [])
        for name, field in taken["properties"].items():
            assert field["type"] == model["properties"][name]["type"]
            assert field["description"] == model["properties"][name]["description"]


def test_constraints_of_pydantic_are_taken_off_a_type_however_deep() -> None:
    from pydantic import Field

    from visenv.algos.bridges.trl.factory import plain

    number = Annotated[int, Field(ge=0)]
    assert (
        plain(Annotated[list[Annotated[list[number], Field(min_length=2)]], 1]) == list[list[int]]
    )
    assert plain(number | None) == int | None
    assert plain(dict[str, number]) == dict[str, int]
    assert plain(Literal["a", "b"]) == Literal["a", "b"]


def test_environment_that_speaks_otherwise_is_refused_and_the_way_is_named() -> None:
    from visenv.algos.bridges.trl import environment_factory

    with pytest.raises(ConfigurationError, match=r"ZoomVQA.*JSON tool calls.*VisenvGRPOTrainer"):
        environment_factory("visenv/ZoomVQA-v0", preset="tiny")


# ---------------------------------------------------------------------------------- episodes


@pytest.mark.parametrize("env_id", ["ArmZoom", "ArmDoc", "ArmIF", "ArmVQA", "ArmDocVQA"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reward_is_that_of_the_environment_played_directly(env_id: str, seed: int) -> None:
    name = f"visenv/{env_id}-v0"
    environment = _environment(name)
    completion = _play_oracle(environment, seed)
    oracle = load("policy", "oracle")()
    episode = asyncio.run(play(gym.make(name, **DOC), oracle, EpisodeSpec(seed)))
    assert episode.reward > 0
    assert _reward(environment, completion) == episode.reward
    texts = [event.text.split() for event in environment.episode._base.log.turns]
    assert texts == [turn.text.split() for turn in episode.turns]


def test_tool_result_is_a_block_for_the_template_to_wrap() -> None:
    environment = _environment()
    opening = environment.reset(seed=0)
    assert [block["type"] for block in opening].count("image") == 1
    turn = environment.episode._base.oracle_turn()
    (call,) = turn.calls
    shown = getattr(environment, call.name)(**call.arguments)
    text = "".join(block.get("text", "§") for block in shown)
    assert text.startswith("observation_1:\n§")
    assert "tool_response" not in text
    refused = environment.doc_page_retrieval_by_index(filename="nothing", image_idx=1)
    assert refused.startswith("Error: ")


def test_thoughts_that_trl_kept_back_count() -> None:
    """Check that stage 2 pays 1.5 for the right verdict after a call, if all turns are well-formed.

    If one of two turns has no thought, half of the format reward of 0.3 is lost.
    """
    environment = _environment()
    completion = _play_oracle(environment, 0)
    assert _reward(environment, completion) == 1.5
    completion = _play_oracle(environment, 0)
    del completion[0]["reasoning_content"]  # the first turn had no thought
    assert _reward(environment, completion) == pytest.approx(0.3 / 2 + 0.7 + 0.5)
    completion = _play_oracle(environment, 0)
    completion[-1]["content"] = "<answer>Overall Judgment: Answer 99 is better</answer>"
    # Wrong: 0.3 for the format, and -0.5 for evidence that precedes a wrong one of two verdicts.
    assert _reward(environment, completion) == pytest.approx(0.3 - 0.5)


def test_rollout_that_trl_cut_off_has_no_reward_and_the_next_starts_a_new_episode() -> None:
    environment = _environment()
    completion = _play_oracle(environment, 0)
    assert _reward(environment, completion[:-1]) == 0.0  # no token was left for the answer
    completion = _play_oracle(environment, 0)
    assert _reward(environment, completion) == 1.5


def test_call_that_trl_did_not_make_any_more_is_the_last_turn() -> None:
    environment = _environment()
    environment.reset(seed=0)
    last = _said(environment.episode._base.oracle_turn())
    assert _reward(environment, [last]) == 0.0
    (event,) = environment.episode._base.log.tool_calls
    assert event.ok


def test_episode_reports_its_end_after_its_last_turn() -> None:
    environment = _environment(turns=2)
    environment.reset(seed=0)
    wrong = {"filename": "nothing", "image_idx": 1}
    assert "Error" in environment.doc_page_retrieval_by_index(**wrong)
    shown = environment.doc_page_retrieval_by_index(**wrong)  # the last turn has no tools
    assert "No tool call is left" in shown
    assert environment.doc_page_retrieval_by_index(**wrong).startswith("The episode has ended")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"self": 1},
        {"filename": None, "image_idx": "x"},
        {"filename": "a", "image_idx": 1, "more": {"deep": [1, float("nan")]}},
        {"filename": "</tool_call>", "image_idx": 10**400},
    ],
)
def test_environment_answers_any_arguments(arguments: dict[str, Any]) -> None:
    environment = _environment()
    environment.reset(seed=0)
    shown = environment.doc_page_retrieval_by_index(**arguments)
    assert shown.startswith("Error: ")
    assert len(environment.episode._base.log.turns) == 1


def test_text_that_looks_like_a_control_token_is_none() -> None:
    from visenv.algos.bridges.trl.native import _blocks
    from visenv.types import Message as Shown

    messages = (Shown("user", ("<tool_response>\na <|image_pad|>\n</tool_response>", "\nthen")),)
    assert [block["text"] for block in _blocks(messages)] == ["a < |image_pad|>", "\nthen"]


def test_video_is_shown_as_its_frames() -> None:
    from visenv.algos.bridges.trl.native import _blocks
    from visenv.types import Message as Shown

    video = Video((judged.picture(30), judged.picture(90)), (0.0, 0.5))
    text, *frames = _blocks((Shown("user", ("<tool_response>\nfilm", video)),))
    assert text == {"type": "text", "text": "film"}
    assert [frame["image"].getpixel((0, 0))[0] for frame in frames] == [30, 90]


# ------------------------------------------------------------------------------------- failures


def _troubled(error: Exception) -> Any:
    """Return an environment whose tool raises `error`."""
    environment = _environment()
    environment.reset(seed=0)
    tool = environment.episode._base.tools["doc_page_retrieval_by_index"]

    def fail(*_: Any) -> Any:
        raise error

    tool.call = fail
    return environment


def test_service_that_is_away_aborts_the_episode() -> None:
    environment = _troubled(ServiceError("index", "away"))
    environment.doc_page_retrieval_by_index(filename="a", image_idx=1)
    assert _reward(environment, [_said(ParsedTurn(" so ", answer="True"))]) is None


def test_tool_that_raises_aborts_the_episode() -> None:
    environment = _troubled(RuntimeError("a bug"))
    with pytest.raises(RuntimeError):  # TRL shows the error to the model
        environment.doc_page_retrieval_by_index(filename="a", image_idx=1)
    assert _reward(environment, [_said(ParsedTurn(" so ", answer="True"))]) is None


# ---------------------------------------------- wrappers, judges, and frames that only viewers see

LOOK = _said(ParsedTurn(" look ", (ToolCall("look", {}),)))


def _so(color: str) -> Message:
    return _said(ParsedTurn(" so ", answer=color))


@pytest.fixture
def judged_id() -> Iterator[Callable[..., str]]:
    """Yield a function that registers `judged.make` with options and returns the environment id."""
    made: list[str] = []

    def register(**options: Any) -> str:
        made.append(f"test/Judged{len(made)}-v0")
        make: Any = judged.make
        gym.register(made[-1], make, kwargs=options, disable_env_checker=True)
        return made[-1]

    yield register
    for name in made:
        del gym.registry[name]


def _judged(env_id: str, **options: Any) -> Any:
    from visenv.algos.bridges.trl import environment_factory

    return environment_factory(env_id, **options)()


def test_deferred_terms_are_computed_from_the_original_texts_of_the_turns(judged_id: Any) -> None:
    """Check the terms: answer 1, call 0.2, and 0.5 times the share of turns with a thought."""
    environment = _judged(judged_id())
    for first, share in ((LOOK, 1.0), (LOOK | {"reasoning_content": None}, 0.5)):
        environment.reset(seed=0)
        environment.look()
        color = environment.episode._base.sample.id
        assert _reward(environment, [first, _so(color)]) == pytest.approx(1.2 + 0.5 * share)


@pytest.mark.parametrize("judge", [judged.brief, None])
@pytest.mark.parametrize(
    ("turns", "wrap"), [(1, lambda env: env), (3, lambda env: gym.wrappers.TimeLimit(env, 1))]
)
def test_terms_read_the_thought_of_a_call_that_ends_the_episode(
    judged_id: Any, turns: int, wrap: Any, judge: Any
) -> None:
    """Check call 0.2 and 0.5 times the share of turns with a thought, deferred or not."""
    environment = _judged(judged_id(turns=turns, wrap=wrap, judge=judge))
    for said, share in ((LOOK, 1.0), (LOOK | {"reasoning_content": None}, 0.0)):
        environment.reset(seed=0)
        environment.look()
        assert environment.look().startswith("The episode has ended")
        assert _reward(environment, [said]) == pytest.approx(0.2 + 0.5 * share)


def test_outermost_wrapper_ends_the_episode_and_its_reward_counts(judged_id: Any) -> None:
    from visenv.algos.bridges.trl.native import turn_text

    def wrap(env: Any) -> Any:
        limited = gym.wrappers.TimeLimit(env, 1)
        return gym.wrappers.TransformReward(limited, lambda reward: float(reward) / 2 + 0.25)

    env_id = judged_id(wrap=wrap)
    environment = _judged(env_id)
    environment.reset(seed=0)
    assert environment.look().startswith("The episode has ended")
    assert environment.look().startswith("The episode has ended")
    reward = _reward(environment, [LOOK, _so("light")])
    base = environment.episode._base
    assert [event.reason for event in base.log.of_type(Truncated)] == ["wrapper"]
    assert len(base.log.turns) == 1  # no step follows the end
    # The wrapper changes the step's reward from 0 to 0.25; the player adds 0.2 for the call and 0.5
    # for the thought.
    assert reward == pytest.approx(0.25 + 0.2 + 0.5)
    script = ScriptedPolicy([turn_text(LOOK)])
    assert reward == asyncio.run(play(gym.make(env_id), script, EpisodeSpec(0))).reward


def test_answer_that_a_wrapper_scores_has_the_reward_of_the_wrapper(judged_id: Any) -> None:
    halved = judged_id(
        wrap=lambda env: gym.wrappers.TransformReward(env, lambda paid: float(paid) / 2)
    )
    environment = _judged(halved)
    environment.reset(seed=0)
    environment.look()
    color = environment.episode._base.sample.id
    # The wrapper needs the reward, so the judge is called in the step of the answer.
    assert _reward(environment, [LOOK, _so(color)]) == pytest.approx((1.2 + 0.5) / 2)


def test_judges_of_all_rollouts_are_asked_before_one_is_waited_for(judged_id: Any) -> None:
    from visenv.algos.bridges.trl import native_reward

    asked, everyone = [0], asyncio.Event()

    async def together(sample: Any) -> None:
        asked[0] += 1
        if asked[0] == 3:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 60)

    env_id = judged_id(judge=together)
    environments = [_judged(env_id) for _ in range(3)]
    for environment in environments:
        environment.reset(seed=0)
    rewards = native_reward([[_so("neither")]] * 3, environments)
    assert rewards == [0.5] * 3  # the only turn has a thought


def test_judge_that_is_away_aborts_the_episode_with_its_name(judged_id: Any) -> None:
    environment = _judged(judged_id(judge=judged.away))
    environment.reset(seed=0)
    environment.look()
    assert _reward(environment, [LOOK, _so("light")]) is None
    assert environment.episode.failure == Failure("service", "judge", "away")


def test_failures_keep_their_type() -> None:
    environment = _troubled(ServiceError("index", "away"))
    environment.doc_page_retrieval_by_index(filename="a", image_idx=1)
    assert environment.episode.failure == Failure("service", "index", "away")
    environment = _troubled(RuntimeError("a bug"))
    with pytest.raises(RuntimeError):
        environment.doc_page_retrieval_by_index(filename="a", image_idx=1)
    failure = environment.episode.failure
    assert (failure.source, failure.name, failure.reason) == (
        "environment",
        "RuntimeError",
        "a bug",
    )
    environment = _environment()
    environment.reset(seed=0, index=3)
    assert environment.episode.failure.source == "configuration"


def test_last_turn_that_raises_aborts_its_episode_alone(caplog: Any) -> None:
    environment = _environment()
    environment.reset(seed=0)

    def fail(*_: Any) -> Any:
        raise RuntimeError("a bug")

    environment.episode._base.task_score = fail
    environment.episode._base.is_done = fail
    assert _reward(environment, [_said(ParsedTurn(" so ", answer="True"))]) is None
    assert environment.episode.failure.name == "RuntimeError"
    assert "An environment failed" in caplog.text
    assert _reward(environment, _play_oracle(environment, 0)) == 1.5  # a new environment


def test_frames_that_the_policy_does_not_see_are_not_shown(judged_id: Any) -> None:
    environment = _judged(judged_id())
    opening = environment.reset(seed=0)
    shown = environment.look()
    images = [block["image"] for block in (*opening, *shown) if block["type"] == "image"]
    grays = [image.getpixel((0, 0))[0] for image in images]
    assert grays == [30, 90]
    assert environment.episode._result.hidden_frames[0].frames == (judged.HIDDEN,)


def test_row_without_a_seed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no seed"):
        _environment().reset(prompt=[])


def test_sample_that_cannot_be_read_aborts_its_episode_alone() -> None:
    environment = _environment()
    (block,) = environment.reset(seed=0, index=3)  # the procedural world has no rows
    assert block["type"] == "text"
    assert _reward(environment, [_said(ParsedTurn(" so ", answer="True"))]) is None
    assert _reward(environment, _play_oracle(environment, 0)) == 1.5


# ------------------------------------------------------------------- TRL's own trainer


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("arm") / "tiny", "visenv/ArmDoc-v0")


def _trainer(arm: Path, config: Any, **options: Any) -> Any:
    from trl.chat_template_utils import qwen3_vl_chat_template
    from trl.trainer.grpo_trainer import GRPOTrainer

    from visenv.algos.bridges.trl import environment_factory, native_reward, rows

    policy = load("policy", "transformers")(arm, threads=1)
    policy.network.model.set_attn_implementation("sdpa")
    processor = policy.codec.processor
    processor.chat_template = qwen3_vl_chat_template  # the real model's template, which has tools
    return GRPOTrainer(
        policy.network.model,
        reward_funcs=native_reward,
        args=config,
        train_dataset=rows(range(4)),
        processing_class=processor,
        environment_factory=environment_factory("visenv/ArmDoc-v0", **(DOC | options)),
    )


def _speak_as_the_oracle(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Make TRL's generation return the oracle's turns; return the model inputs of all calls."""
    grammar = trainer.environment_factories[None]().episode._base.grammar
    given: list[dict[str, Any]] = []
    called: list[Any] = []  # environments whose last turn called a tool and which generate again

    def generate(input_ids: Any, **inputs: Any) -> Any:
        given.append(inputs)
        asked = called or [each.episode._base for each in trainer.environments]
        turns = [base.oracle_turn() for base in asked]
        called[:] = [base for base, turn in zip(asked, turns, strict=True) if turn.calls]
        texts = [grammar.compose(turn) + "<|im_end|>" for turn in turns]
        said = trainer._tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
        return torch.cat([input_ids, said["input_ids"]], 1)

    monkeypatch.setattr(trainer.model, "generate", generate)
    return given


Config = Callable[..., Any]


def test_images_that_tools_return_reach_the_model_and_are_learned_from(
    arm: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = config(per_device_train_batch_size=4, num_generations=2, max_completion_length=400)
    trainer = _trainer(arm, small)
    given = _speak_as_the_oracle(trainer, monkeypatch)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    rows = [dict(trainer.train_dataset[n // 2]) for n in range(4)]
    batch = trainer._prepare_inputs(rows)
    assert [len(inputs["image_grid_thw"]) for inputs in given] == [4, 8]  # overview; and page
    assert batch["num_images"] == [2] * 4
    pads = int((batch["mm_token_type_ids"] == 1).sum())
    assert pads == int(batch["image_grid_thw"].prod(-1).sum()) // 4
    assert 0 < int(batch["tool_mask"].sum()) < int(batch["completion_mask"].sum())
    assert trainer._metrics["train"]["reward"] == [1.5]
    samples = [each.episode._base.sample.id for each in trainer.environments]
    assert samples[0] == samples[1] != samples[2] == samples[3]
    batch["advantages"] = torch.tensor([1.0, -1.0, 0.5, 0.25])
    trainer._compute_loss(trainer.model, batch).backward()
    visual = [p.grad for name, p in trainer.model.named_parameters() if "visual" in name]
    assert any(grad is not None and grad.abs().max() > 0 for grad in visual)


def test_trl_trains_with_the_turns_of_a_random_model(arm: Path, config: Config) -> None:
    small = config(
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=8,
        max_steps=1,
        logging_steps=1,
        max_tool_calling_iterations=2,
    )
    trainer = _trainer(arm, small)
    trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["rewards/native_reward/mean"] == 0
    assert logged["tools/call_frequency"] == 0


def test_rollouts_that_were_aborted_move_no_baseline(
    arm: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"max_completion_length": 400, "max_tool_calling_iterations": 3}
    trainer = _trainer(arm, config(per_device_train_batch_size=3, **limits))
    trainer.model.train()
    _speak_as_the_oracle(trainer, monkeypatch)
    rows = [dict(trainer.train_dataset[0])] * 3
    trainer._generate_and_score_completions(rows)
    second = trainer.environments[1].episode._base

    def fail(*_: Any) -> Any:
        raise ServiceError("index", "away")

    for tool in second.tools.values():
        monkeypatch.setattr(tool, "call", fail)
    batch = trainer._generate_and_score_completions(rows)
    assert batch["advantages"].tolist() == [0, 0, 0]  # rewards 1.5, none, 1.5: no spread
    means = trainer._metrics["train"]["rewards/native_reward/mean"]
    assert means[-1] == 1.5


def test_calls_of_tools_there_are_not_and_of_several_at_once() -> None:
    environment = _environment()
    environment.reset(seed=0)
    base = environment.episode._base
    turn = base.oracle_turn()
    (call,) = turn.calls
    unknown = _said(ParsedTurn(" look ", calls=(ToolCall("nothing", {}),)))
    two = _said(ParsedTurn(" look ", calls=(call, call)))
    getattr(environment, call.name)(**call.arguments)
    getattr(environment, call.name)(**call.arguments)
    answer = _said(ParsedTurn(" so ", answer=base.oracle_turn().answer or "none"))
    # An unknown tool and two calls in one turn are malformed, so one of three turns is well-formed.
    assert _reward(environment, [unknown, two, answer]) == pytest.approx(0.3 / 3 + 0.7 + 0.5)
    assert len(base.log.tool_calls) == 2
