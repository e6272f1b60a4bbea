"""Tests preference pairs: how they are written, and which are dropped as copies."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz

from tests.hostile_rows import hostile
from visenv.curation.writer import Writer
from visenv.envs.arm.curation import Dedupe, Negatives, ScriptedGenerator
from visenv.envs.arm.curation.duplicates import _Group, _Pair
from visenv.envs.arm.curation.prompts import FLAWS
from visenv.errors import ConfigurationError, PolicyError, UnknownNameError
from visenv.types import Image

QUESTION = {"question": "What colour is the car?", "response": "The car is red.", "kind": "colour"}


def negatives(policy: Any, **options: Any) -> Negatives:
    return Negatives(Writer(policy), **options)


# ---------------------------------------------------------------------------- writing


def test_flawed_responses_become_pairs(kit: Any) -> None:
    image = kit.image()
    policy = kit.Replies({"responses": ["The car is blue.", "The van is red."]})
    row = {**QUESTION, "images": [str(kit.folder / image)]}
    (outcome,) = kit.run(negatives(policy, count=2, flaws=["object", "attribute"]), [row])
    assert outcome.status == "kept"
    first, second = outcome.rows
    assert (first["id"], second["id"]) == ("r0/0", "r0/1")
    assert {first["flaw"], second["flaw"]} == {"object", "attribute"}
    for pair, rejected in ((first, "The car is blue."), (second, "The van is red.")):
        assert pair["source"] == "r0"
        assert (pair["chosen"], pair["rejected"]) == ("The car is red.", rejected)
        assert (pair["question"], pair["kind"]) == (QUESTION["question"], "colour")
        assert [Image.from_file(path) for path in pair["images"]] == [
            Image.from_file(kit.folder / image)  # a copy in the folder of the output
        ]
        assert "response" not in pair
    (message,) = policy.conversations[0]
    assert len(message.images) == 1
    prompt = message.parts[-1]
    for text in (QUESTION["question"], QUESTION["response"], *map(FLAWS.get, ("object",))):
        assert text in prompt


def test_kinds_of_flaw_are_drawn_by_the_rows_id_alone(kit: Any) -> None:
    rows = [QUESTION] * 40

    def drawn(out: str, **options: Any) -> list[str]:
        policy = kit.Replies({"responses": ["The car is blue."]})
        outcomes = kit.run(negatives(policy, **options), rows, out)
        return [outcome.rows[0]["flaw"] for outcome in outcomes]

    flaws = drawn("a/a.jsonl")
    assert flaws == drawn("b/b.jsonl")
    assert flaws != drawn("c/c.jsonl", seed=1)
    assert len(set(flaws)) == len(FLAWS)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"responses": ["The car is red."]}, "same response"),
        ({"responses": ["the CAR is  red"]}, "same response"),  # the same words
        ({"responses": ["The car is blue, which is wrong."]}, "correctness cue"),
        ({"responses": []}, "wrong count"),
        ({"response": "The car is blue."}, "wrong shape"),
        ("I'm sorry, I cannot do that.", "refusal"),
        ("", "empty reply"),
        ("blue", "no JSON"),
        (PolicyError("the server is down"), "no reply"),
    ],
)
def test_unusable_reply_fails_the_row(kit: Any, reply: Any, reason: str) -> None:
    policy = kit.Replies(reply)
    (outcome,) = kit.run(negatives(policy), [QUESTION])
    assert (outcome.status, outcome.reason) == ("failed", reason)
    assert outcome.detail["error"]
    assert len(policy.sampling) == (1 if reason == "no reply" else 3)


def test_second_reply_counts_when_the_first_cannot_be_used(kit: Any) -> None:
    policy = kit.Replies({"responses": ["The car is red."]}, {"responses": ["The car is blue."]})
    (outcome,) = kit.run(negatives(policy), [QUESTION])
    assert outcome.rows[0]["rejected"] == "The car is blue."


def test_flawed_responses_that_are_equal_are_refused(kit: Any) -> None:
    policy = kit.Replies({"responses": ["It is blue.", "it is BLUE"]})
    (outcome,) = kit.run(negatives(policy, count=2), [QUESTION])
    assert outcome.reason == "same response"


@pytest.mark.attack("data: a hostile row is reported, and the other rows are read")
def test_hostile_rows_are_accounted_for(kit: Any) -> None:
    rows = hostile({**QUESTION, "images": [str(kit.folder / kit.image())]})
    outcomes = kit.run(negatives(ScriptedGenerator()), rows)
    assert {outcome.status for outcome in outcomes} <= {"kept", "failed"}
    kept = [row for outcome in outcomes for row in outcome.rows]
    assert kept
    assert all(pair["chosen"].strip() and pair["rejected"].strip() for pair in kept)


@pytest.mark.parametrize("options", [{"count": 0}, {"count": 9}, {"count": 2, "flaws": ["count"]}])
def test_responses_outnumber_flaws(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="Expected a count from 1"):
        negatives(None, **options)


def test_unknown_flaw_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'attribute'"):
        negatives(None, flaws=["atribute"])


# ---------------------------------------------------------------------------- copies

PAIR = {"question": "Which?", "chosen": "a red car", "rejected": "a red van"}


def dedupe(kit: Any, rows: list[Any], **options: Any) -> list[Any]:
    found: list[Any] = kit.run(Dedupe(**options), rows)
    return found


def test_responses_that_are_too_similar_are_dropped(kit: Any) -> None:
    # Longest common subsequence "a red a", 7 of 9 characters each: 1 - (2 + 2) / 18 = 0.7778
    assert dedupe(kit, [PAIR], contrast=0.78)[0].status == "kept"
    (outcome,) = kit.run(Dedupe(contrast=0.77), [PAIR], "b/b.jsonl")
    assert (outcome.reason, outcome.detail["similarity"]) == ("responses too alike", 0.7778)


def test_defaults(kit: Any) -> None:
    same = {**PAIR, "rejected": " A  RED car"}
    last = {"question": "q", "chosen": "x" * 19 + "y", "rejected": "x" * 19 + "z"}
    outcomes = dedupe(kit, [PAIR, same, last])
    assert [outcome.status for outcome in outcomes] == ["kept", "dropped", "dropped"]
    assert outcomes[2].detail["similarity"] == 0.95  # 1 - 2/40


def test_copy_names_the_pair_it_is_a_copy_of(kit: Any) -> None:
    # "Which?" and "Which" share 5 of 11 characters twice: 10/11 = 0.9091
    copies = [PAIR, {**PAIR, "question": "Which"}, {**PAIR, "question": "WHICH?"}]
    outcomes = dedupe(kit, copies, duplicate=0.9)
    assert [outcome.status for outcome in outcomes] == ["kept", "dropped", "dropped"]
    assert outcomes[1].detail == {"of": "r0", "similarity": 0.9091}
    assert outcomes[2].detail == {"of": "r0", "similarity": 1.0}
    assert outcomes[1].reason == "near duplicate"


def test_pair_with_another_flaw_in_the_same_response_is_no_copy(kit: Any) -> None:
    long = "Which of the many cars that are parked in the yard is the one that is asked for here?"
    rows = [
        {"question": long, "chosen": "red", "rejected": "blue"},
        {"question": long, "chosen": "red", "rejected": "cyan"},
    ]
    assert [outcome.status for outcome in dedupe(kit, rows)] == ["kept", "kept"]


def test_pair_with_the_same_words_about_another_image_is_no_copy(kit: Any) -> None:
    paths = [str(kit.folder / kit.image(f"{k}.png", gray=k)) for k in (0, 1)]
    twin = str(kit.folder / kit.image("twin.png", gray=1))
    rows = [{**PAIR, "images": images} for images in ([paths[0]], [paths[1]], [twin], [], paths)]
    statuses = [outcome.status for outcome in dedupe(kit, rows)]
    assert statuses == ["kept", "kept", "dropped", "kept", "kept"]  # twin = 1.png


def test_image_that_is_not_there_fails_the_pair(kit: Any) -> None:
    rows = [{**PAIR, "images": [str(kit.folder / "no.png")]}, {**PAIR, "images": ["a\0.png"]}]
    assert [each.reason for each in dedupe(kit, rows)] == ["cannot be read"] * 2


@pytest.mark.attack("data: a hostile row is reported, and the other rows are read")
def test_hostile_pairs_are_accounted_for(kit: Any) -> None:
    outcomes = dedupe(kit, hostile({**PAIR, "images": [str(kit.folder / kit.image())]}))
    assert {outcome.status for outcome in outcomes} == {"kept", "failed"}


@pytest.mark.parametrize("options", [{"contrast": 0.0}, {"duplicate": 1.1}, {"contrast": -1}])
def test_thresholds_out_of_range(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and at most 1"):
        Dedupe(**options)


TEXT = st.text(st.sampled_from("ab é\U0001f600"), max_size=12)


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=12), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_counting_characters_first_rules_out_no_copy(
    texts: list[tuple[str, str, str]], threshold: float
) -> None:
    """Check that the group finds the same copy as a comparison with every pair."""
    group = _Group()
    there: list[_Pair] = []
    for number, three in enumerate(texts):
        pair = _Pair(str(number), *three)
        least = [min(map(fuzz.ratio, pair[1:], other[1:])) / 100 for other in there]
        expected = next((k for k, value in enumerate(least) if value >= threshold), None)
        found = group.copy_of(pair, threshold)
        assert (found is None) is (expected is None)
        if found is not None and expected is not None:
            assert found == (str(expected), least[expected])
        group.add(pair)
        there.append(pair)


def test_dropped_pairs_do_not_depend_on_where_a_run_was_stopped(kit: Any) -> None:
    rng = random.Random(4)
    words = ["red", "blue", "green", "round", "square"]
    rows = [
        {key: " ".join(rng.choices(words, k=3)) for key in ("question", "chosen", "rejected")}
        for _ in range(60)
    ]
    whole = kit.run(Dedupe(duplicate=0.6), rows, "a/a.jsonl")
    kit.run(Dedupe(duplicate=0.6), rows[:25], "b/b.jsonl")
    assert kit.run(Dedupe(duplicate=0.6), rows, "b/b.jsonl") == whole
    assert 10 < sum(outcome.status == "kept" for outcome in whole) < 50
