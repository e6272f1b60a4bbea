"""Tests the policy with a real server: tokens and log-probabilities as without it, and failures."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.algos.distributed.launching import ROOT, launch, require_two_who_sampled_alike
from tests.listeners import family, listeners, require_listed
from tests.on_load import OnLoad
from tests.policies.vllm.attacks import every_request, http, state_of, update_with
from tests.policies.vllm.conftest import ONE_PROCESS
from tests.policies.vllm.relay import Relay
from tests.second_user import IS_POSSIBLE
from visenv.envs.argos.prompts import REASONER
from visenv.errors import PolicyError
from visenv.policies.vllm.request import encode
from visenv.scorers import Generate, LogProbs, Scorer
from visenv.types import Sample, Sampling, TurnRequest, Video
from visenv.verifier.models import ModelReasoner
from visenv.verifier.reasoning import reasoning_score

pytestmark = [
    pytest.mark.component("vllm", "torch", "transformers", "outlines-core"),
    pytest.mark.timeout(900),  # a server needs time to start
]

GREEDY = Sampling(0.0, 8)
BOUND = 1e-5


@pytest.fixture(scope="module")
def served(qwen3_folder: Path, small: dict[str, Any]) -> Iterator[Any]:
    """Yield a policy whose server would unpickle handles of GPU memory, as with ``ipc``."""
    from visenv.policies.vllm import VLLMServerPolicy

    options = small["options"] | {"weight_transfer_config": {"backend": "ipc"}, **ONE_PROCESS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
        policy = VLLMServerPolicy(qwen3_folder, retries=2, **small | {"options": options})
        yield policy
        policy.close()


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return a list that records all requests to the server."""
    sent: list[dict[str, Any]] = []

    def spy(*arguments: Any) -> dict[str, Any]:
        sent.append(encode(*arguments))
        return sent[-1]

    monkeypatch.setattr("visenv.policies.vllm.client.encode", spy)
    return sent


def test_server_samples_the_same_as_transformers(served: Any, qwen3: Any, exam: Any) -> None:
    ours = exam.play(served, range(8), sampling=GREEDY)
    theirs = exam.play(qwen3, range(8), sampling=GREEDY)
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.turns == other.turns
    segments = exam.play(served, range(8), sampling=Sampling(0.7, 8))
    assert exam.error(qwen3, segments, exam.images(range(8))) < BOUND
    ask = TurnRequest("<think>", ("</answer>",), r"[^<]{0,8}</think><answer>[^<]{1,6}</answer>")
    segments = exam.play(served, range(4), request=ask, sampling=Sampling(1.0, 60))
    assert exam.error(qwen3, segments, exam.images(range(4))) < BOUND


def test_server_reads_videos_frame_by_frame(
    served: Any, qwen3: Any, talk: Any, exam: Any, bodies: Any
) -> None:
    """Check uneven times, an odd number of frames, and an image; each video is sent once."""
    clip = talk.clip(7, 5, 48, 64, 0.7)
    clip = Video(clip.frames, (-0.5, 0.0, 0.31, 4.0, 9.99))
    turns = [talk.shown("a", clip, talk.picture(50), talk.clip(8, 1)), talk.shown("b", clip)]
    ours, _ = talk.alone(served, 1, turns, sampling=GREEDY)
    theirs, _ = talk.alone(qwen3, 1, turns, sampling=GREEDY)
    (one,), (other,) = ours.segments(), theirs.segments()
    assert one.token_ids.tolist() == other.token_ids.tolist()
    assert one.videos == other.videos
    parts = [part for message in turns[0] for part in message.parts if not isinstance(part, str)]
    assert exam.error(qwen3, [one], {part.sha256: part for part in parts}) < BOUND
    sent = [[part["url"] is not None for part in body["content_parts"]] for body in bodies]
    assert sent == [[True] * 3, [False] * 4]


@pytest.mark.attack("servers: a vLLM server refuses requests without its token on every path")
def test_server_refuses_every_request_without_the_token(served: Any, tmp_path: Path) -> None:
    address = served.server.address
    with address.client(300.0) as client:
        before = state_of(client)
        requests = every_request(client, OnLoad(tmp_path / "unpickled"))
        with address.without_token().client(300.0) as stranger:
            for request in requests:
                response = stranger.request(**request)
                assert response.status_code == 401, request
                named = {**request, "headers": {"Authorization": f"Bearer {'0' * 64}"}}
                assert stranger.request(**named).status_code == 401, request
        assert state_of(client) == before
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.attack(
    "servers: a vLLM server answers only its own names and JSON, and no other origin"
)
def test_server_refuses_what_a_page_of_another_origin_can_send(served: Any) -> None:
    body = b'{"method": "visenv_mark", "kwargs": {"identity": "of another"}}'
    with served.server.address.client(300.0) as client:
        before = state_of(client)
        for named, status in (
            ({"Host": "evil.example", "Content-Type": "application/json"}, 421),
            ({"Content-Type": "text/plain"}, 415),
            ({}, 415),
        ):
            response = client.post("/collective_rpc", content=body, headers=named)
            assert response.status_code == status
        from_page = client.get("/health", headers={"Origin": "https://evil.example"})
        assert from_page.status_code == 200
        assert not [name for name in from_page.headers if name.startswith("access-control")]
        assert state_of(client) == before


@pytest.mark.attack("servers: the table of listeners is complete")
@pytest.mark.attack("servers: another user cannot use a private socket or a port with a credential")
def test_server_listens_as_documented_and_another_user_cannot_use_it(
    served: Any, second_user: Any
) -> None:
    found = listeners(family(served.server._process.pid))
    require_listed("vLLM server", found)
    web = next(one for one in found if one.place.endswith("/server"))
    answers = second_user([web], http("GET", "/health"), http("GET", "/v1/realtime", upgrade=True))
    for answer in answers[0]:
        assert answer == "PermissionError" if IS_POSSIBLE else answer.startswith("HTTP/1.1 401 ")
    queues = [one for one in found if not one.port and one != web]
    assert queues
    if IS_POSSIBLE:
        assert second_user(queues, "") == [["PermissionError"]] * len(queues)


@pytest.mark.attack("servers: a token is on no command line and in no log")
def test_token_of_the_server_cannot_be_read_by_others(served: Any) -> None:
    server = served.server
    for pid in family(server._process.pid):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert server.address.token.encode() not in command
        assert Path(f"/proc/{pid}/environ").stat().st_mode & 0o077 == 0
    assert server.address.token not in server._log.read_text()
    assert server.address.token not in repr(server.address) + server.url


@pytest.fixture(scope="module")
def scorers(served: Any, qwen3_folder: Path) -> Iterator[tuple[Scorer, Scorer]]:
    """Yield scorers with the server and with the same checkpoint in this process."""
    address = served.server.address
    patched = pytest.MonkeyPatch.context()
    with address.client(300.0) as client, Relay(address.url) as relay, patched as patch:
        [model] = client.get("/v1/models").json()["data"]
        patch.setenv("SERVER_KEY", address.token)
        url = f"{relay.url}/v1"
        there = Scorer(
            "openai", model=model["id"], base_url=url, key_variable="SERVER_KEY", retries=0
        )
        here = Scorer("transformers", model=str(qwen3_folder))
        yield there, here
        here.close()


def test_scorers_on_the_server_and_in_this_process_agree(
    scorers: tuple[Scorer, Scorer], talk: Any
) -> None:
    there, here = scorers
    for number in range(4):
        images = [talk.picture(500 + number + each, 64 + 32 * each) for each in range(number % 3)]
        messages = tuple(talk.shown("what is in the crop", *images))
        request = LogProbs(messages, "yes , it is")
        one, other = there.submit(request).result(300), here.submit(request).result(300)
        assert len(one.value) == len(other.value) >= 4
        assert np.allclose(one.value, other.value, rtol=0, atol=1e-4)
    # For other prompts, the untrained model samples ids without text, which vLLM leaves out.
    greedy = Generate(tuple(talk.shown("what is in the crop")), max_tokens=6)
    assert there.submit(greedy).result(300).value == here.submit(greedy).result(300).value


@pytest.mark.parametrize("answer", ["red", "the red cube , I see", "12"])
def test_probability_of_an_answer_is_the_same_on_the_server(
    scorers: tuple[Scorer, Scorer], talk: Any, answer: str
) -> None:
    """Check P(answer | question, reasoning, images) of Argos, eq. 5, with the family's prompt."""
    images = tuple(talk.picture(700 + number, 96, 64) for number in range(2))
    sample = Sample("s", "what color is the cube ?", images, ("red",))
    reasoning = "the cube at <point x='3' y='4'>cube</point> is red"

    async def probabilities() -> list[float]:
        return [
            await reasoning_score(sample, reasoning, answer, ModelReasoner(scorer, REASONER))
            for scorer in scorers
        ]

    one, other = asyncio.run(probabilities())
    assert 0 < one < 1
    assert abs(one - other) <= 1e-4


def test_image_is_sent_once_and_again_when_the_server_forgot_it(
    served: Any, talk: Any, bodies: list[dict[str, Any]]
) -> None:
    turns = [talk.shown("a", talk.picture(171)), talk.shown("b", talk.picture(172))]
    _, expected = talk.alone(served, 0, turns, sampling=GREEDY)

    def sent() -> list[list[bool]]:
        return [[part["url"] is not None for part in body["content_parts"]] for body in bodies]

    assert sent() == [[True], [False, True]]
    bodies.clear()
    served._present._control._ask("POST", "/reset_mm_cache")
    _, again = talk.alone(served, 0, turns, sampling=GREEDY)
    assert sent() == [[False], [True], [False, True]]  # rejected, sent with the image, cached again
    assert [reply.text for reply in again] == [reply.text for reply in expected]


def test_new_weights_are_sent_by_a_folder_and_turns_continue_with_them(
    served: Any, fresh: Any, qwen3: Any, exam: Any, talk: Any
) -> None:
    import torch

    with torch.no_grad():
        for weight in fresh.parameters():
            weight.mul_(1.1)
    endless = TurnRequest("", (), "[0-9]{400}")

    async def run(attempt: int) -> Any:
        turns = [talk.shown("a", talk.picture(3))]
        long = Sampling(1.0, 420)
        turn = asyncio.create_task(talk.converse(served, 4, turns, request=endless, sampling=long))
        while not served._present._flying:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05 * 2**attempt)  # also on a slow machine, one is during the turn
        given = fresh.network.model.state_dict().items()
        await asyncio.to_thread(served.load, given, 2 * attempt + 1)
        return await turn

    for attempt in range(1, 11):  # until the weights arrive during a turn
        served.load(qwen3.network.model.state_dict().items(), 2 * attempt)
        session, (reply,) = asyncio.run(run(attempt))
        (segment,) = session.segments()
        versions = segment.policy_version[segment.loss_mask]
        assert len(reply.text) == 400
        if versions[0] != versions[-1]:
            break
    before, after = 2 * attempt, 2 * attempt + 1
    assert versions.tolist() == sorted(versions.tolist())
    assert set(versions.tolist()) == {before, after}
    images = {image.sha256: image for image in session.stream.images}
    for judge, version in ((qwen3, before), (fresh, after)):
        scored = judge.score([segment], images).logprobs[0].detach().numpy()[segment.loss_mask]
        part = versions == version
        recorded = segment.logprobs[segment.loss_mask]
        np.testing.assert_allclose(scored[part], recorded[part], rtol=0, atol=BOUND)
    segments = exam.play(served, range(4), sampling=GREEDY)
    assert exam.error(fresh, segments, exam.images(range(4))) < BOUND


def test_second_policy_connects_after_weights_arrived_by_a_folder(
    qwen3_folder: Path, small: dict[str, Any], served: Any, qwen3: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Check that the server's image processor is that of the checkpoint, not of that folder."""
    from visenv.policies.vllm import VLLMServerPolicy

    served.load(qwen3.network.model.state_dict().items(), 99)
    monkeypatch.setenv("VISENV_SERVER_TOKEN", served.server.address.token)
    guest = VLLMServerPolicy(qwen3_folder, served.server.url, context=small["context"])
    guest.close()


def test_weights_that_do_not_match_are_refused_until_they_do(
    served: Any, qwen3: Any, exam: Any
) -> None:
    given = dict(qwen3.network.model.state_dict())
    missing = given.pop("model.visual.pos_embed.weight")
    with pytest.raises(PolicyError, match=r"missing, for example model\.visual\.pos_embed\.weight"):
        served.load(given.items(), 7)
    assert served.stale
    with pytest.raises(PolicyError, match="lacks the current weights"):
        exam.play(served, [0], sampling=GREEDY)
    given["model.visual.pos_embed.weight"] = missing
    served.load(given.items(), 8)
    segments = exam.play(served, range(2), sampling=GREEDY)
    assert exam.error(qwen3, segments, exam.images(range(2))) < BOUND


def test_cancelled_turn_is_aborted(served: Any, talk: Any) -> None:
    endless = TurnRequest("", (), "[0-9]{400}")

    async def run() -> None:
        long = Sampling(1.0, 420)
        turn = asyncio.create_task(
            talk.converse(served, 4, [talk.shown("a")], request=endless, sampling=long)
        )
        while not served._present._flying:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(run())
    control = served._present._control

    def running() -> int:
        return int(control._ask("POST", "/abort_requests", {}).json()["aborted"])

    deadline = time.monotonic() + 30
    while served._present._flying and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not served._present._flying
    time.sleep(1.0)  # until the server has noticed it; the turn would have taken longer
    assert running() == 0


def test_prompt_the_server_refuses_is_its_own_error(served: Any, talk: Any) -> None:
    shown = [talk.shown("a", *(talk.picture(k) for k in range(9)))]
    served._most["images"] = 9
    try:
        with pytest.raises(PolicyError, match=r"rejects this prompt: .*8"):
            talk.alone(served, 0, shown, sampling=GREEDY)
    finally:
        served._most["images"] = 8


def test_turn_waits_while_the_server_sleeps(served: Any, exam: Any, talk: Any) -> None:
    (expected,) = exam.play(served, [1], sampling=GREEDY)
    served.sleep()

    async def run() -> Any:
        waiting = asyncio.create_task(talk.converse(served, 1, exam.turns(1), sampling=GREEDY))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done
        threading.Thread(target=served.wake).start()
        session, _ = await waiting
        return session.segments()[0]

    assert asyncio.run(run()).token_ids.tolist() == expected.token_ids.tolist()


@pytest.mark.soak
def test_processes_train_with_one_server(
    served: Any,
    qwen3: Any,
    qwen3_folder: Path,
    tmp_path: Path,
    exam: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check two replicas, of which one sends the weights that both sample with."""
    program = ROOT / "tests" / "algos" / "distributed" / "sampling.py"
    monkeypatch.setenv("VISENV_SERVER_TOKEN", served.server.address.token)
    done = launch("replicas", program, qwen3_folder, tmp_path / "run", served.server.url)
    require_two_who_sampled_alike(done, tmp_path / "run")
    served.load(qwen3.network.model.state_dict().items(), 10)
    segments = exam.play(served, range(2), sampling=GREEDY)
    assert exam.error(qwen3, segments, exam.images(range(2))) < BOUND


@pytest.mark.soak
def test_turns_in_flight_when_their_server_is_killed_end(
    qwen3_folder: Path,
    small: dict[str, Any],
    served: Any,
    qwen3: Any,
    exam: Any,
    talk: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Check that turns end with errors, and that a second policy rejects the restarted server.

    The server's owner restarts it as another process at the same address, with the checkpoint's
    weights.
    """
    from visenv.policies.vllm import VLLMServerPolicy

    monkeypatch.setenv("VISENV_SERVER_TOKEN", served.server.address.token)
    guest = VLLMServerPolicy(qwen3_folder, served.server.url, context=small["context"], retries=4)
    assert "without a token" not in caplog.text
    given = {name: weight * 1.1 for name, weight in qwen3.network.model.state_dict().items()}
    guest.load(given.items(), 5)
    endless = TurnRequest("", (), "[0-9]{400}")
    killed = served.server._process

    async def run() -> list[Any]:
        long = Sampling(1.0, 420)
        turns = [
            asyncio.create_task(
                talk.converse(policy, seed, [talk.shown("a")], request=endless, sampling=long)
            )
            for seed, policy in enumerate((guest, guest, served, served))
        ]
        # Other threads set these values.
        while guest._present._flying + served._present._flying < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.killpg(killed.pid, signal.SIGKILL)
        return await asyncio.wait_for(asyncio.gather(*turns, return_exceptions=True), 300)

    served._loaded = False  # the server is restarted for the next turn, with the checkpoint
    ended = asyncio.run(run())
    assert all(isinstance(each, PolicyError) for each in ended[:2]), ended
    if not served.server.alive:
        served._client()
    with pytest.raises(PolicyError, match=r"not hold the weights of version 5|lacks the current"):
        talk.alone(guest, 0, [talk.shown("a")], sampling=GREEDY)
    assert guest.stale
    guest.load(given.items(), 6)
    segments = exam.play(guest, range(2), sampling=GREEDY)
    assert set(segments[0].policy_version[segments[0].loss_mask].tolist()) == {6}
    guest.close()


@pytest.mark.soak
def test_server_that_dies_raises_an_error_and_is_restarted_for_the_next_load(
    served: Any, qwen3: Any, exam: Any, talk: Any
) -> None:
    served.load(qwen3.network.model.state_dict().items(), 8)
    process = served.server._process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    assert served.stale  # a new server would have the checkpoint's weights
    with pytest.raises(PolicyError, match=r"does not answer|died"):
        talk.alone(served, 0, [talk.shown("a")])
    served.load(qwen3.network.model.state_dict().items(), 9)
    assert not served.stale
    segments = exam.play(served, range(2), sampling=GREEDY)
    assert exam.error(qwen3, segments, exam.images(range(2))) < BOUND


@pytest.mark.attack("servers: weight transfers unpickle nothing from a peer without the token")
def test_handles_of_gpu_memory_are_unpickled_only_with_the_token(
    served: Any, tmp_path: Path
) -> None:
    """Check that the attack of the first test would work with the token; this ends the server."""
    address = served.server.address
    update = {"method": "POST", "url": "/update_weights"}
    with address.client(300.0) as client, address.without_token().client(60.0) as stranger:
        client.post("/start_weight_update").raise_for_status()
        refused = stranger.request(**update, json=update_with(OnLoad(tmp_path / "refused")))
        assert refused.status_code == 401
        client.request(**update, json=update_with(OnLoad(tmp_path / "accepted")))
    assert (tmp_path / "accepted").exists()
    assert not (tmp_path / "refused").exists()
