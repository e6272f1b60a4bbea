"""Tests our episodes in verl's own worker, with servers that have its interface."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

from tests.algos.bridges import judged
from tests.waiting import LIMIT
from visenv.errors import ServiceError

pytestmark = [
    pytest.mark.component("verl", "torch", "transformers"),
    # These are warnings between verl and its dependencies.
    pytest.mark.filterwarnings("ignore"),
]

Make = Callable[..., Any]


def test_group_reaches_the_queue_as_verl_wants_it(worker: Make, pictures_id: Make) -> None:
    made = worker(pictures_id())
    asyncio.run(made.play(seed=5, members=3))
    queue = made.queue
    assert queue.statuses == ["running", "finished"]
    assert sorted(queue.keys) == ["u5_0_0", "u5_1_0", "u5_2_0"]
    for row, tag in zip(queue.rows, queue.tags, strict=True):
        mask, responses = row["response_mask"], row["responses"]
        assert len(mask) == len(responses) == len(row["rollout_log_probs"]) == len(row["rm_scores"])
        assert 0 < int(mask.sum()) < len(mask)
        assert (row["rollout_log_probs"][mask == 0] == 0).all()
        assert (row["rollout_log_probs"][mask == 1] < 0).all()
        assert row["position_ids"].shape == (4, len(row["input_ids"]))
        inputs = row["multi_modal_inputs"]
        pads = int((row["input_ids"] == made.server.processor.image_token_id).sum())
        assert pads * 4 == len(inputs["pixel_values"])
        assert len(inputs["image_grid_thw"]) == 2
        assert (tag["min_global_steps"], tag["max_global_steps"]) == (3, 3)


def test_score_is_the_episodes_and_at_the_last_token(worker: Make, pictures_id: Make) -> None:
    made = worker(pictures_id())
    asyncio.run(made.play(seed=1, members=1))
    (row,) = made.queue.rows
    assert not row["rm_scores"][:-1].any()
    turns = row["extra_fields"]["turn_scores"]
    assert float(row["rm_scores"][-1]) == pytest.approx(sum(turns))
    assert len(turns) == 2


def test_members_share_the_sample_and_speak_for_themselves(worker: Make, pictures_id: Make) -> None:
    made = worker(pictures_id())
    asyncio.run(made.play(seed=1, members=2))
    asyncio.run(made.play(seed=2, members=1))
    one, two, other = made.queue.rows
    assert one["prompts"].tolist() == two["prompts"].tolist()
    seen = [row["multi_modal_inputs"]["pixel_values"][:4].tolist() for row in (one, two, other)]
    assert seen[0] == seen[1] != seen[2]
    assert one["responses"].tolist() != two["responses"].tolist()


def test_stock_model_agrees_on_what_verl_would_train_on(worker: Make, pictures_id: Make) -> None:
    """Check that verl's tokens, masks, positions and pixels reproduce the sampled values."""
    import torch

    made = worker(pictures_id())
    asyncio.run(made.play(seed=3, members=2))
    for row in made.queue.rows:
        inputs = row["multi_modal_inputs"]
        with torch.no_grad():
            logits = made.server.model(
                input_ids=row["input_ids"][None],
                position_ids=row["position_ids"][1:, None],
                pixel_values=inputs["pixel_values"],
                image_grid_thw=inputs["image_grid_thw"],
            ).logits[0]
        logits[:, made.server.banned] = -torch.inf
        known = torch.log_softmax(logits, -1)[:-1].gather(1, row["input_ids"][1:, None])[:, 0]
        known = known[-len(row["responses"]) :]
        sampled = row["response_mask"] == 1
        torch.testing.assert_close(
            known[sampled], row["rollout_log_probs"][sampled], rtol=1e-4, atol=1e-4
        )


def test_servers_are_sent_images_and_one_id_for_an_episode(worker: Make, pictures_id: Make) -> None:
    made = worker(pictures_id())
    asyncio.run(made.play(seed=4, members=2))
    by_episode: dict[str, list[Any]] = {}
    for sent in made.server.sent:
        by_episode.setdefault(sent.request_id, []).append(sent)
    assert len(by_episode) == 2
    for turns in by_episode.values():
        assert [sent.images for sent in turns] == [1, 2]
        placeholder = made.server.processor.image_token_id
        assert [sent.collapsed.count(placeholder) for sent in turns] == [1, 2]
        first, second = (sent.collapsed for sent in turns)
        assert second[: len(first)] == first, "append only"
        assert [sent.params["max_tokens"] for sent in turns] == [6, 6]


def test_failed_member_is_left_out_and_the_others_stay(
    worker: Make, pictures: Any, pictures_id: Make
) -> None:
    begun: list[int] = []

    def trouble(seed: int, turn: int) -> None:
        if turn == -1:
            begun.append(seed)
        if len(begun) == 2 and turn == 0:
            raise ServiceError("judge", "away")

    made = worker(pictures_id(trouble=trouble), retries=0, concurrency=1)
    asyncio.run(made.play(seed=1, members=3))
    assert made.queue.statuses == ["running", "finished"]
    assert len(made.queue.keys) == 2


def test_failure_is_logged_with_its_name(
    worker: Make, pictures_id: Make, caplog: pytest.LogCaptureFixture
) -> None:
    made = worker(pictures_id(judged.make, judge=judged.away, turns=1), retries=0)
    asyncio.run(made.play(seed=1, members=1))
    assert made.queue.keys == []
    assert "judge: away" in caplog.text


def test_episode_that_a_wrapper_truncates_is_one_turn_long(
    worker: Make, pictures: Any, pictures_id: Make
) -> None:
    def make() -> Any:
        return gym.wrappers.TimeLimit(pictures.Pictures(), 1)

    made = worker(pictures_id(make))
    asyncio.run(made.play(seed=1, members=2))
    assert len(made.queue.keys) == 2
    for row in made.queue.rows:
        (paid,) = row["extra_fields"]["turn_scores"]
        assert float(row["rm_scores"][-1]) == pytest.approx(paid)
        assert len(row["multi_modal_inputs"]["image_grid_thw"]) == 1


def test_deferred_terms_are_in_the_score(worker: Make, pictures_id: Make) -> None:
    made = worker(pictures_id(judged.make, turns=1))
    asyncio.run(made.play(seed=1, members=2))
    assert len(made.queue.keys) == 2
    for row in made.queue.rows:
        terms = row["extra_fields"]["reward_extra_info"]
        expected = terms["right"] + 0.2 * terms["looked"] + 0.5 * terms["thoughts"]
        assert float(row["rm_scores"][-1]) == pytest.approx(expected)


def test_episode_that_failed_is_played_again(worker: Make, pictures_id: Make) -> None:
    failed: list[int] = []

    def once(seed: int, turn: int) -> None:
        if turn == 1 and not failed:
            failed.append(seed)
            raise RuntimeError("a bug")

    made = worker(pictures_id(trouble=once))
    asyncio.run(made.play(seed=1, members=1))
    assert failed == [1]
    assert made.queue.keys == ["u1_0_0"]


def test_environment_that_hangs_is_given_up(worker: Make, pictures_id: Make) -> None:
    released = threading.Event()

    def hang(seed: int, turn: int) -> None:
        if turn == 0:
            released.wait(LIMIT)

    made = worker(pictures_id(trouble=hang), timeout=0.2, retries=0)
    asyncio.run(made.play(seed=1, members=2))
    released.set()
    assert made.queue.statuses == ["running", "finished"]
    assert made.queue.keys == []


def test_episode_that_is_longer_than_a_row_is_left_out(
    worker: Make, pictures: Any, pictures_id: Make
) -> None:
    class Talkative(pictures.Pictures):  # type: ignore[misc]
        def _show(self, text: str) -> Any:
            return super()._show(text * 40 if self._turn else text)

    made = worker(pictures_id(Talkative))
    asyncio.run(made.play(seed=1, members=1))
    assert made.queue.keys == []
    assert len(made.server.sent) == 2  # played twice, with a request for the first turn only


def test_context_that_is_replaced_is_another_output(
    worker: Make, pictures: Any, pictures_id: Make
) -> None:
    class Forgetful(pictures.Pictures):  # type: ignore[misc]
        def step(self, action: str) -> Any:
            *rest, info = super().step(action)
            result = info["step"]
            if result.request is not None:
                request = result.request._replace(context="replace")
                info = {**info, "step": result._replace(request=request)}
            return (*rest, info)

    made = worker(pictures_id(Forgetful))
    asyncio.run(made.play(seed=1, members=1))
    assert made.queue.keys == ["u1_0_0", "u1_0_1"]
    scores = [float(row["rm_scores"][-1]) for row in made.queue.rows]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "said",
    [
        {"token_ids": [], "stop_reason": "aborted"},
        {"token_ids": ["<|image_pad|>"], "log_probs": [-1.0]},
    ],
)
def test_reply_that_cannot_be_used_leaves_the_episode_out(
    said: dict[str, Any], worker: Make, pictures_id: Make
) -> None:
    from verl.workers.rollout.replica import TokenOutput

    made = worker(pictures_id())
    tokens = made.loops.tokenizer.convert_tokens_to_ids(said["token_ids"])

    async def generate(*_: Any, **__: Any) -> Any:
        return TokenOutput(**(said | {"token_ids": tokens}))

    made.server.generate = generate
    asyncio.run(made.play(seed=1, members=1))
    assert made.queue.keys == []


def test_empty_reply_is_a_turn_of_nothing(worker: Make, pictures_id: Make) -> None:
    from verl.workers.rollout.replica import TokenOutput

    made = worker(pictures_id())

    async def generate(*_: Any, **__: Any) -> Any:
        return TokenOutput(token_ids=[], log_probs=[])

    made.server.generate = generate
    asyncio.run(made.play(seed=1, members=1))
    (row,) = made.queue.rows
    assert row["response_mask"].tolist() == [0]


def test_text_of_a_server_after_a_stop_string_is_cut(
    worker: Make, pictures: Any, pictures_id: Make
) -> None:
    from verl.workers.rollout.replica import TokenOutput

    class Stopped(pictures.Pictures):  # type: ignore[misc]
        def _info(self, record: Any) -> Any:
            if record.request is not None:
                record = record._replace(request=record.request._replace(stop=("left",)))
            return super()._info(record)

    made = worker(pictures_id(Stopped))
    words = [made.loops.tokenizer.encode(word) for word in ("right", " left", " right", " left")]

    async def generate(*_: Any, **__: Any) -> Any:
        tokens = [token for word in words for token in word]
        return TokenOutput(token_ids=tokens, log_probs=[-1.0] * len(tokens))

    made.server.generate = generate
    asyncio.run(made.play(seed=1, members=1))
    (row,) = made.queue.rows
    said = made.loops.tokenizer.decode(row["responses"][row["response_mask"] == 1])
    assert said == "right left" * 2


def test_row_without_a_seed_is_a_failure_with_its_reason(
    worker: Make, pictures_id: Make, caplog: pytest.LogCaptureFixture
) -> None:
    made = worker(pictures_id())
    asyncio.run(made.play(seed=1, members=1, extra_info={"index": 0}))
    assert made.queue.statuses == ["running", "failure"]
    assert "names no seed" in caplog.text


def test_image_processor_of_another_kind_is_refused(
    worker: Make, pictures_id: Make, caplog: pytest.LogCaptureFixture
) -> None:
    made = worker(pictures_id())
    made.loops.processor.image_processor.image_mean = [0.1, 0.2, 0.3]
    asyncio.run(made.play(seed=1, members=1))
    assert "in its settings, class or backend" in caplog.text
    assert made.queue.statuses == ["running", "failure"]


def test_model_without_vision_is_refused(
    worker: Make, pictures_id: Make, caplog: pytest.LogCaptureFixture
) -> None:
    made = worker(pictures_id())
    made.loops.processor, made.loops.hf_model_type = None, None
    asyncio.run(made.play(seed=1, members=1))
    assert "has no image processor: set actor_rollout_ref.model.path" in caplog.text
    assert made.queue.statuses == ["running", "failure"]


def test_shipped_file_names_the_loop(tmp_path: Any) -> None:
    from importlib.resources import files

    from hydra.utils import get_class
    from omegaconf import OmegaConf

    shipped = files("visenv.algos.bridges.verl") / "agent_loop.yaml"
    (entry,) = OmegaConf.create(shipped.read_text())
    assert entry.name == "visenv"
    assert get_class(entry._target_).__name__ == "VisenvAgentLoop"
    assert entry.timeout > 0
