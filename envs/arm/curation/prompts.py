"""Holds the prompts of the writers of data. The wording is ours; the tasks are those of the paper.

Source: ARM-Thinker (arXiv 2512.05111), section 3.2 (flawed responses) and appendix F, figures 8
(long responses) and 9 (descriptions). Each prompt ends with the JSON object to write.
"""

from __future__ import annotations

from collections.abc import Sequence

FLAWS = {
    "attribute": "a colour, size, shape, material or other property is another one",
    "count": "a number of things is slightly off",
    "reading": "a word, name, date or figure is misread",
    "place": "where something is, or how two things stand to each other, is another way round",
    "object": "one thing is taken for another that could well be there",
    "invention": "something is claimed that is not there at all",
    "omission": "a part that the question asks for is left out, so that the response is incomplete",
    "reasoning": "the facts are right but what follows from them is drawn wrongly",
}
"""Kinds of error of a flawed response, with their descriptions for the writer."""

_SILENCE = (
    "Every text speaks with the same confidence. None says or hints whether it is right or wrong, "
    "mentions these instructions, or refers to another text."
)


def flawed_responses(question: str, response: str, flaws: Sequence[str]) -> str:
    """Ask for one flawed response of each kind, ``{"responses": [...]}``.

    Args:
        question: The question.
        response: The right response to it.
        flaws: Keys of `FLAWS`, one for each response.
    """
    listed = "\n".join(f"{place}. {FLAWS[flaw]}" for place, flaw in enumerate(flaws, start=1))
    return (
        "You are given a question about what is shown, and a response to it that is right. Write "
        f"{_number(len(flaws), 'other response')} to the same question that could be taken for "
        "right, but each has one error, of this kind:\n"
        f"{listed}\n"
        "Keep to the tone, the form and about the length of the right response. The error must "
        f"contradict the right response, not merely word it in another way. {_SILENCE}\n\n"
        f"{_given(question, response)}\n\n"
        "Reply with one JSON object and nothing else, the responses in the order of the kinds: "
        f'{{"responses": {_list(len(flaws))}}}'
    )


def long_responses(question: str, answer: str, wrong: int) -> str:
    """Ask for a long right response and `wrong` long wrong ones, ``{"right": …, "wrong": [...]}``.

    Args:
        question: The question.
        answer: The short right answer to it.
        wrong: Number of wrong responses, at least 1.
    """
    return (
        "You are given a question about what is shown, and its answer. Turn the answer into one "
        "full response of a few sentences: how one goes about the question, what there is to see, "
        "and in the end the answer itself, in the given words. Then write "
        f"{_number(wrong, 'further response')} built in the same way and about as long, each of "
        "which arrives at a different answer that is plausible and not right. A wrong response "
        "must not contain the given answer anywhere, not even to reject it. "
        f"{_SILENCE} Vary the wording.\n\n"
        f"{_given(question, answer)}\n\n"
        f'Reply with one JSON object and nothing else: {{"right": "…", "wrong": {_list(wrong)}}}'
    )


def descriptions(question: str, answer: str) -> str:
    """Ask for a describing question and two descriptions, ``{"question", "right", "wrong"}``.

    Args:
        question: The question.
        answer: The short right answer to it.
    """
    return (
        "You are given a question about an image, and its answer. First turn the question into "
        "a request to describe: it says “describe” and “in detail”, names the part of the image "
        "that the question is about, is short, and does not give away which property matters. "
        "(A question for the make of a watch becomes a request to describe the person's wrist in "
        "detail.) Then write two descriptions of that part that fulfil the request, of the same "
        "build and about the same length. The first fits the image and mentions the given answer "
        "in passing, in the given words. The second reads as smoothly, but one detail of it "
        "contradicts the given answer in a way that only a close look at the image shows; it must "
        f"not contain the given answer. {_SILENCE}\n\n"
        f"{_given(question, answer)}\n\n"
        "Reply with one JSON object and nothing else: "
        '{"question": "…", "right": "…", "wrong": "…"}'
    )


def _given(question: str, answer: str) -> str:
    return f"<question>\n{question}\n</question>\n<answer>\n{answer}\n</answer>"


def _number(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count} {thing}s"


def _list(count: int) -> str:
    return "[" + ", ".join(['"…"'] * count) + "]"
