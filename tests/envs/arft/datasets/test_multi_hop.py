"""Tests HotpotQA, 2WikiMultihopQA, MuSiQue and Bamboogle: layouts, gold hops, broken rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from visenv.data.open import open_data
from visenv.envs.arft.datasets.multi_hop import MultiHopSource
from visenv.envs.arft.datasets.multi_hop_sets import Bamboogle, HotpotQA, MuSiQue, WikiMultihop
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.errors import DataError, UnknownNameError
from visenv.search import Passage
from visenv.search.corpus import Corpus, write_passages

Row = dict[str, Any]
Made = Callable[[Path], MultiHopSource]

HOTPOT: Row = {
    "_id": "5a8b",
    "question": "Were Ed Wood and Scott Derrickson of the same nationality?",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["Scott Derrickson", 0], ["Ed Wood", 0], ["Ed Wood", 1]],
    "context": [
        ["Ed Wood", ["Ed Wood was American.", " He made films."]],
        ["Adam Collis", ["Adam Collis is an actor."]],
        ["Scott Derrickson", ["Scott Derrickson is American."]],
    ],
}
WIKI: Row = {
    "_id": "8813",
    "type": "compositional",
    "question": "Who is the mother of the director of film Polish-Russian War?",
    "answer": "Małgorzata Braunek",
    "answer_id": "Q274277",
    "supporting_facts": [["Polish-Russian War (film)", 1], ["Xawery Żuławski", 2]],
    "evidences": [
        ["Polish-Russian War", "director", "Xawery Żuławski"],
        ["Xawery Żuławski", "mother", "Małgorzata Braunek"],
    ],
    "context": [["Xawery Żuławski", ["He directs.", "His mother is an actress."]]],
}
MUSIQUE: Row = {
    "id": "2hop__460946_294723",
    "question": "Who is the spouse of the Green performer?",
    "answer": "Miquette Giraudy",
    "answer_aliases": ["Giraudy", "Miquette Giraudy"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Blue", "paragraph_text": "A colour.", "is_supporting": False},
        {"idx": 5, "title": "Steve Hillage", "paragraph_text": "Wed.", "is_supporting": True},
        {"idx": 10, "title": "Green (album)", "paragraph_text": "His.", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 1, "question": "Green >> performer", "answer": "Steve Hillage",
         "paragraph_support_idx": 10},
        {"id": 2, "question": "#1 >> spouse", "answer": "Miquette Giraudy",
         "paragraph_support_idx": 5},
    ],
}  # fmt: skip
FILES: dict[Made, tuple[str, Row]] = {
    HotpotQA: ("hotpot_dev_distractor_v1.json", HOTPOT),
    WikiMultihop: ("dev.json", WIKI),
    MuSiQue: ("musique_ans_v1.0_dev.jsonl", MUSIQUE),
}


def write(folder: Path, name: str, *rows: Any) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, rows)) if name.endswith(".jsonl") else json.dumps(rows)
    file.write_text(text)
    return folder


def published(folder: Path, made: Made, *rows: Any) -> MultiHopSource:
    return made(write(folder, FILES[made][0], *rows))


def test_question_of_hotpotqa(tmp_path: Path) -> None:
    sample = published(tmp_path, HotpotQA, HOTPOT)[0]
    assert (sample.id, sample.kind) == ("hotpotqa-dev-5a8b", "comparison")
    assert (sample.question, sample.answers) == (HOTPOT["question"], ("yes",))
    titles = ("Scott Derrickson", "Ed Wood")
    assert sample.ground_truth == SearchTruth(queries=titles, articles=titles, split="dev")
    assert sample.images == ()


def test_question_of_2wikimultihopqa_with_its_aliases(tmp_path: Path) -> None:
    aliases = [
        {"Q_id": "Q274277", "aliases": ["M. Braunek"], "demonyms": ["Braunek"]},
        {"Q_id": "Q1", "aliases": ["another"], "demonyms": []},
        {"Q_id": "Q2", "aliases": "none"},
        [],
    ]
    (tmp_path / "id_aliases.json").write_text("\n".join(map(json.dumps, aliases)))
    source = published(tmp_path, WikiMultihop, WIKI)
    sample = source[0]
    assert sample.answers == ("Małgorzata Braunek", "M. Braunek", "Braunek")
    assert sample.ground_truth.queries == ("Polish-Russian War director", "Xawery Żuławski mother")
    assert sample.ground_truth.articles == ("Polish-Russian War (film)", "Xawery Żuławski")
    assert [(problem.file[-15:], problem.row) for problem in source.problems] == [
        ("id_aliases.json", 3), ("id_aliases.json", 4),
    ]  # fmt: skip


def test_question_of_musique(tmp_path: Path) -> None:
    sample = published(tmp_path, MuSiQue, MUSIQUE)[0]
    assert (sample.kind, sample.answers) == ("2hop", ("Miquette Giraudy", "Giraudy"))
    assert sample.ground_truth.queries == ("Green performer", "Steve Hillage spouse")
    assert sample.ground_truth.articles == ("Green (album)", "Steve Hillage")


def test_unanswerable_rows_of_musique_are_skipped(tmp_path: Path) -> None:
    source = published(tmp_path, MuSiQue, MUSIQUE, MUSIQUE | {"answerable": False})
    assert (len(source), source.problems) == (1, [])


def test_hops_name_earlier_answers_by_number(tmp_path: Path) -> None:
    hops = [
        {"question": "who is #9", "answer": "A"},
        {"question": "where was #1 born", "answer": "B"},
        {"question": "what joins #1 and #2", "answer": "C"},
    ]
    row = MUSIQUE | {"id": "3hop1__1_2_3", "question_decomposition": hops}
    sample = published(tmp_path, MuSiQue, row)[0]
    assert sample.kind == "3hop1"
    assert sample.ground_truth.queries == ("who is #9", "where was A born", "what joins A and B")
    assert sample.ground_truth.articles == ()  # the row names no articles


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_bamboogle_as_released(tmp_path: Path, bom: str) -> None:
    lines = 'Question,Answer\n"Who, then?",James\nWho else?,\nWhich\x00?,Two\n'
    (tmp_path / "Bamboogle Prerelease - Sheet1.csv").write_text(bom + lines)
    source = Bamboogle(tmp_path)
    assert (source[0].question, source[0].answers) == ("Who, then?", ("James",))
    assert source[0].ground_truth == SearchTruth(split="test")
    assert source[1].question == "Which?"
    assert [problem.row for problem in source.problems] == [3]
    assert "at least one answer" in source.problems[0].problem
    (tmp_path / "Bamboogle Prerelease - Sheet1.csv").write_text("q,a\nx,y\n")
    with pytest.raises(DataError, match="must have the columns Question and Answer"):
        Bamboogle(tmp_path)


# ---------------------------------------------------------------------------- FlashRAG


def columns(pairs: list[list[Any]], beside: str) -> Row:
    return {"title": [pair[0] for pair in pairs], beside: [pair[1] for pair in pairs]}


def flashrag(row: Row, **metadata: Any) -> Row:
    answers = [row["answer"], *row.get("answer_aliases", [])]
    identity = row.get("id", "dev_0")
    return {
        "id": identity, "question": row["question"], "golden_answers": answers,
        "metadata": metadata,
    }  # fmt: skip


def test_flashrag_gives_the_same_questions(tmp_path: Path) -> None:
    facts = columns(HOTPOT["supporting_facts"], "sent_id")
    context = columns(HOTPOT["context"], "sentences")
    row = flashrag(HOTPOT, type="comparison", supporting_facts=facts, context=context)
    released = published(tmp_path / "a", HotpotQA, HOTPOT)
    repeated = open_data(f"hotpotqa:{write(tmp_path, 'hotpotqa/dev.jsonl', row)}?split=dev")
    assert isinstance(repeated, HotpotQA)
    assert (repeated[0].ground_truth, repeated[0].kind) == (released[0].ground_truth, "comparison")
    assert list(repeated.passages()) == list(released.passages())

    facts = columns(WIKI["supporting_facts"], "sent_id")
    context = columns(WIKI["context"], "content")
    triples = dict(
        zip(("fact", "relation", "entity"), zip(*WIKI["evidences"], strict=True), strict=True)
    )
    for evidences in (WIKI["evidences"], triples, None):
        row = flashrag(WIKI, supporting_facts=facts, context=context, evidences=evidences)
        wiki = WikiMultihop(write(tmp_path, "2wikimultihopqa/dev.jsonl", row))
        assert wiki[0].ground_truth.queries[0] == (
            "Polish-Russian War director" if evidences else "Polish-Russian War (film)"
        )
        assert list(wiki.passages()) == [
            Passage("Xawery Żuławski", "He directs. His mother is an actress.")
        ]

    hops = [
        hop | {"support_paragraph": paragraph}
        for hop, paragraph in zip(
            MUSIQUE["question_decomposition"], reversed(MUSIQUE["paragraphs"][1:]), strict=True
        )
    ]
    row = flashrag(MUSIQUE, answerable=True, question_decomposition=hops)
    musique = MuSiQue(write(tmp_path, "musique/dev.jsonl", row))
    assert musique[0] == published(tmp_path / "b", MuSiQue, MUSIQUE)[0]
    assert [each.title for each in musique.passages()] == ["Green (album)", "Steve Hillage"]

    row = {"id": "test_0", "question": "Who?", "golden_answers": ["A", "B"]}
    bamboogle = Bamboogle(write(tmp_path, "bamboogle/test.jsonl", row))
    assert bamboogle[0].answers == ("A", "B")


# ---------------------------------------------------------------------------- splits, scores


def test_splits(tmp_path: Path) -> None:
    hidden = {key: HOTPOT[key] for key in ("_id", "question")}
    write(tmp_path, "hotpot_test_fullwiki_v1.json", hidden)
    write(tmp_path, "hotpot_train_v1.1.json", HOTPOT)
    test = HotpotQA(tmp_path, "test")
    assert (test[0].answers, test[0].ground_truth.split) == ((), "test")
    with pytest.raises(DataError, match="the sample has none"):
        test.score("yes", test[0])
    train = HotpotQA(tmp_path, "train")
    assert train.score("Yes.", train[0]) == 1.0
    with pytest.raises(UnknownNameError, match="Did you mean 'test'"):
        HotpotQA(tmp_path, "tset")
    with pytest.raises(DataError, match=r"hotpot_dev_distractor_v1\.json"):
        HotpotQA(tmp_path)


# ---------------------------------------------------------------------------- broken rows

COMMON: list[tuple[Row, str]] = [
    ({"question": None}, "no question"),
    ({"question": 3}, "no question"),
    ({"answer": None, "answer_aliases": []}, "at least one answer"),
    ({"answer": " ", "answer_aliases": None}, "at least one answer"),
    ({"answer": ["yes"]}, "an answer is not text"),
    ({"metadata": [1]}, "the metadata must be an object"),
    ({"golden_answers": "yes"}, "the answers must be a list"),
]
FACTS: list[tuple[Row, str]] = [
    ({"supporting_facts": "Ed"}, "no titles"),
    ({"supporting_facts": [["Ed"]]}, "no title with its sent_id"),
    ({"supporting_facts": [[3, 4]]}, "no title with its sent_id"),
    ({"supporting_facts": {"title": ["Ed"], "sent_id": []}}, "no titles"),
]
BROKEN: list[tuple[Made, Row, str]] = [
    *((made, row, says) for made in FILES for row, says in COMMON),
    *((HotpotQA, row, says) for row, says in FACTS),
    *((WikiMultihop, row, says) for row, says in FACTS),
    (HotpotQA, {"_id": None}, "no _id"),
    (HotpotQA, {"_id": "first"}, "used before"),
    (WikiMultihop, {"evidences": 3}, "no triples"),
    (WikiMultihop, {"evidences": [["a", "b"]]}, "must be a triple"),
    (WikiMultihop, {"evidences": {"fact": ["a"]}}, "no triples"),
    (MuSiQue, {"answer_aliases": "none"}, "must be a list"),
    (MuSiQue, {"answer_aliases": [None, 3]}, "not text"),
    (MuSiQue, {"question_decomposition": ["who"]}, "must be a list of objects"),
    (MuSiQue, {"question_decomposition": [{"answer": "a"}]}, "no question"),
    (MuSiQue, {"question_decomposition": [{"question": "q", "support_paragraph": 3}]}, "a row"),
    (MuSiQue, {"paragraphs": {"title": "x"}}, "must be a list of objects"),
]


@pytest.mark.parametrize(("made", "changes", "says"), BROKEN)
def test_row_that_cannot_be_used_is_listed_and_the_others_are_read(
    tmp_path: Path, made: Made, changes: Row, says: str
) -> None:
    row = FILES[made][1]
    key = "_id" if "_id" in row else "id"
    source = published(
        tmp_path, made, row | {key: "first"}, {**row, **changes}, row | {key: "last"}
    )
    assert [source[index].id.rpartition("-")[2] for index in range(2)] == ["first", "last"]
    (problem,) = source.problems
    assert problem.row == 2
    assert says in problem.problem


def test_bytes_that_are_no_json(tmp_path: Path) -> None:
    write(tmp_path, "musique_ans_v1.0_dev.jsonl", MUSIQUE)
    file = tmp_path / "musique_ans_v1.0_dev.jsonl"
    file.write_bytes(b"\xff\xfe\n[]\n{half\n" + b"[" * 50_000 + b"\n\n" + file.read_bytes())
    source = MuSiQue(tmp_path)
    assert [problem.row for problem in source.problems] == [1, 2, 3, 4]
    assert len(source) == 1
    file.write_bytes(b"\x80")
    with pytest.raises(DataError, match="No row of"):
        MuSiQue(tmp_path)
    (tmp_path / "dev.json").write_bytes(b"\x80")
    with pytest.raises(DataError, match="not JSON"):
        WikiMultihop(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.sampled_from(list(FILES)),
    st.sampled_from([*HOTPOT, *WIKI, *MUSIQUE, "metadata", "golden_answers"]),
    JSON,
)
def test_row_is_read_whatever_stands_in_the_one_before(
    tmp_path: Path, made: Made, key: str, value: Any
) -> None:
    row = FILES[made][1]
    good = row | {"_id" if "_id" in row else "id": "good"}
    source = published(tmp_path, made, {**row, key: value}, good)
    assert source[len(source) - 1].id.endswith("-good")
    assert list(source.passages())


# ---------------------------------------------------------------------------- passages


def test_paragraphs_become_a_corpus_each_once(tmp_path: Path) -> None:
    blank = [["Empty", []], ["Ed Wood", ["Another Ed."]]]
    source = published(
        tmp_path / "data", HotpotQA, HOTPOT,
        HOTPOT | {"_id": "2"}, HOTPOT | {"_id": "3", "context": blank},
        HOTPOT | {"_id": "4", "context": [["Ed", "no list"]]},
        HOTPOT | {"_id": "5", "context": None},
    )  # fmt: skip
    out = tmp_path / "new" / "passages.jsonl"
    assert write_passages(source, out) == 4
    assert list(Corpus(out)) == [
        Passage("Ed Wood", "Ed Wood was American. He made films."),
        Passage("Adam Collis", "Adam Collis is an actor."),
        Passage("Scott Derrickson", "Scott Derrickson is American."),
        Passage("Ed Wood", "Another Ed."),
    ]
    assert write_passages(source, out) == 4
    assert [problem.row for problem in source.problems] == [4]  # reported once
    assert len(source) == 5  # the row is still used as a question


def test_set_without_paragraphs_makes_no_corpus(tmp_path: Path) -> None:
    row = {"id": "test_0", "question": "Who?", "golden_answers": ["A"]}
    source = Bamboogle(write(tmp_path, "test.jsonl", row))
    with pytest.raises(DataError, match="contain no paragraphs"):
        write_passages(source, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
