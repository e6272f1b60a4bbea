"""Tests items about constraints: the checks select them, and the benchmark's loader agrees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from visenv.curation.places import row_lines, seed_lines
from visenv.envs.arm.curation import ConstraintItems
from visenv.envs.arm.datasets.armbench import ARMBench
from visenv.envs.arm.datasets.mm_ifeval import MMIFEval
from visenv.envs.arm.ground_truth import Constraint, ConstraintCheck, InstructionTruth
from visenv.policies.scripted import ScriptedPolicy, ScriptedSession
from visenv.types import Message, Reply, Sample, Sampling, TurnRequest

pytestmark = pytest.mark.component("opencv")

TRACK = "multimodal_instruction_following"
SHORT = {
    "key": "length",
    "value": "Use at most 5 words.",
    "judge": {
        "method": "rule_based",
        "verify_funcs": [
            {"func": "check_whether_response_word_count_in_range", "params": [1, 5]},
        ],
    },
}
BLUE = {
    "key": "word",
    "value": 'Begin with "Blue".',
    "judge": {
        "method": "rule_based",
        "verify_funcs": [
            {
                "func": "check_whether_whole_response_begin_with_certain_substring",
                "params": ["Blue"],
            },
        ],
    },
}
NICE = {"key": "tone", "value": "Be kind.", "judge": {"method": "direct_gpt"}}


class Answers(ScriptedPolicy):
    """Replies with one text, and records the prompts."""

    def __init__(self, text: str) -> None:
        super().__init__(self.say)
        self.text = text
        self.asked: list[Message] = []

    def say(self, messages: Sequence[Message], request: TurnRequest) -> str:
        self.asked += messages
        return self.text


def instructions(kit: Any, *constraints: Sequence[Any]) -> MMIFEval:
    folder = kit.folder / "mmif"
    folder.mkdir(exist_ok=True)
    kit.image("mmif/a.png")
    rows = [
        {
            "id": number,
            "tag": "C-Level",
            "instruction": "Describe the wall. Be kind.",
            "image": "a.png",
            "constraints": each,
        }
        for number, each in enumerate(constraints)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return MMIFEval(folder)


def run(kit: Any, source: MMIFEval, text: str) -> tuple[Any, Path]:
    out = kit.folder / "bench" / f"{TRACK}.jsonl"
    step = ConstraintItems(source, Answers(text), out.parent)
    return step.run(row_lines(source), out), out


def test_constraints_that_a_check_decides_are_items(kit: Any) -> None:
    source = instructions(kit, [SHORT, NICE, BLUE])
    account, out = run(kit, source, "<think>hm</think>The wall is blue.")
    assert (account.kept, account.rows) == (1, 2)
    bench = ARMBench(out.parent)
    assert not bench.problems
    short, blue = bench[0], bench[1]
    assert short.ground_truth.constraint == "Use at most 5 words."
    assert short.answers == ("True",)  # 4 words
    assert (blue.ground_truth.constraint, blue.answers) == (BLUE["value"], ("False",))
    for sample in (short, blue):
        assert sample.ground_truth.candidates == ("The wall is blue.",)
        assert sample.images[0].size == (8, 6)
        assert sample.kind == "single_rm"
    assert short.ground_truth.check == ConstraintCheck(
        name="check_whether_response_word_count_in_range",
        arguments={"lower_bound": 1, "upper_bound": 5},
    )


def test_prompt_of_an_instruction(kit: Any) -> None:
    source = instructions(kit, [SHORT, NICE])
    policy = Answers("Blue.")
    ConstraintItems(source, policy, kit.folder).run(row_lines(source), kit.folder / "o.jsonl")
    (message,) = policy.asked
    assert len(message.images) == 1
    text = str(message.parts[-1])
    assert text.startswith("Describe the wall.")
    assert text.count("Use at most 5 words.") == 1
    assert text.count("Be kind.") == 1  # the instruction already contains this sentence


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty reply"), ("<think>so</think> ", "empty reply"), ("I'm sorry, no.", "refusal")],
)
def test_row_without_a_response_to_judge_fails(kit: Any, text: str, reason: str) -> None:
    account, _ = run(kit, instructions(kit, [SHORT]), text)
    assert account.failed == {reason: 1}


def test_reply_that_the_limit_cut_is_no_response(kit: Any) -> None:
    """Check a reply that is cut in its thoughts, which must not be taken for a response."""

    class Cut(Answers):
        @override
        async def respond(
            self, session: ScriptedSession, request: TurnRequest, sampling: Sampling
        ) -> Reply:
            reply = await super().respond(session, request, sampling)
            return reply._replace(finish_reason="length")

    source, out = instructions(kit, [SHORT]), kit.folder / "o.jsonl"
    step = ConstraintItems(source, Cut("<think>First, the wall"), kit.folder)
    assert step.run(row_lines(source), out).failed == {"reply cut off": 1}


def test_rows_without_such_a_constraint_are_dropped_unasked(kit: Any) -> None:
    source = instructions(kit, [NICE], [SHORT])
    account, _ = run(kit, source, "Blue.")
    assert account.dropped == {"no constraint that a check decides": 1}
    assert account.kept == 1


def constrained(name: str, arguments: Any) -> Constraint:
    check = ConstraintCheck(name=name, arguments=arguments)
    return Constraint(key="", text="c", method="rule_based", checks=(check,))


def test_check_with_arguments_that_do_not_fit_fails_the_row(kit: Any) -> None:
    name = "check_whether_response_word_count_in_range"
    bounds = [{"lower_bound": "one", "upper_bound": {}}, {"lower_bound": 1, "upper_bound": 5}]
    source = [
        Sample("s", "q", ground_truth=InstructionTruth(constraints=(constrained(name, each),)))
        for each in bounds
    ]
    step = ConstraintItems(source, Answers("Blue."), kit.folder)
    account = step.run(row_lines(source), kit.folder / "o.jsonl")
    assert (account.kept, account.failed) == (1, {"cannot be read": 1})


def test_place_that_is_not_there_fails(kit: Any) -> None:
    source = instructions(kit, [SHORT])
    step = ConstraintItems(source, Answers("Blue."), kit.folder)
    assert step.run(seed_lines(1), kit.folder / "o.jsonl").failed == {"cannot be read": 1}
