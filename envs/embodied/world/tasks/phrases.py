"""Lists the texts of instructions. Training and evaluation share none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..items import Split

TEMPLATES: Mapping[str, Mapping[Split, Sequence[str]]] = {
    "place": {
        "train": (
            "Put {thing} {dest}.",
            "Move {thing} so that it is {dest}.",
            "Please place {thing} {dest}.",
        ),
        "eval": ("Take {thing} and leave it {dest}.", "I want {thing} to be {dest}."),
    },
    "place_two": {
        "train": ("Put two {kinds} {dest}.", "Place a pair of {kinds} {dest}."),
        "eval": ("Bring two {kinds} so that both are {dest}.", "I need two {kinds} {dest}."),
    },
    "light": {
        "train": (
            "Look at {thing} under the light of {lamp}.",
            "Examine {thing} by the light of {lamp}.",
        ),
        "eval": ("Hold {thing} while {lamp} is on.", "Use {lamp} to see {thing} better."),
    },
    "clean": {
        "train": ("Put {thing}, washed, {dest}.", "Wash {thing} and put it {dest}."),
        "eval": ("Rinse {thing} clean, then leave it {dest}.", "I want {thing} clean and {dest}."),
    },
    "heat": {
        "train": ("Heat {thing} and put it {dest}.", "Put {thing} {dest} after warming it up."),
        "eval": ("Make {thing} hot, then leave it {dest}.", "I want {thing} hot and {dest}."),
    },
    "cool": {
        "train": ("Chill {thing} and put it {dest}.", "Put {thing} {dest} after cooling it down."),
        "eval": ("Make {thing} cold, then leave it {dest}.", "I want {thing} cold and {dest}."),
    },
    "stack": {
        "train": (
            "Put {thing} in {vessel}, then put {vessel_again} {dest}.",
            "Place {vessel} with {thing} in it {dest}.",
        ),
        "eval": ("Carry {thing} inside of {vessel} and leave both {dest}.",),
    },
    "slice_heat": {
        "train": ("Slice {thing}, heat it and put it {dest}.",),
        "eval": ("Cut up {thing}, make it hot and leave it {dest}.",),
    },
    "slice_cool": {
        "train": ("Slice {thing}, chill it and put it {dest}.",),
        "eval": ("Cut up {thing}, make it cold and leave it {dest}.",),
    },
    "clean_heat": {
        "train": ("Wash {thing}, heat it and put it {dest}.",),
        "eval": ("Rinse {thing}, make it hot and leave it {dest}.",),
    },
    "clean_cool": {
        "train": ("Wash {thing}, chill it and put it {dest}.",),
        "eval": ("Rinse {thing}, make it cold and leave it {dest}.",),
    },
    "place_each": {
        "train": ("Put {list} {dest}.", "Gather {list} {dest}."),
        "eval": ("Bring {list} so that all are {dest}.",),
    },
    "place_all": {
        "train": ("Put every {kind} of the house {dest}.",),
        "eval": ("No {kind} should be anywhere but {dest}.",),
    },
    "leave_open": {
        "train": ("Put {thing} {dest} and leave {door} open.",),
        "eval": ("I want {thing} {dest}, and {door} open.",),
    },
    "if_there": {
        "train": ("If there is {condition}, put {thing} {dest}; otherwise put it {other}.",),
        "eval": ("Leave {thing} {other}, unless there is {condition}: then leave it {dest}.",),
    },
}
"""The templates of each task type by split."""

DISTRACTIONS: Mapping[Split, Sequence[str]] = {
    "train": (
        "My sister comes back on Sunday, and the train may be late again.",
        "The neighbors painted their fence, which took them three days.",
        "Somebody left the radio on this morning, but that does not matter now.",
        "We had planned to clean the windows; that can wait.",
    ),
    "eval": (
        "The letter from the bank has to be answered, although not by you.",
        "It rained so much yesterday that we stayed in all day.",
        "There was a power cut last week, so the clocks were wrong for a while.",
    ),
}
"""Sentences without relation to the task."""


def article(words: str) -> str:
    """Return words with the indefinite article."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in running text."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def plural(word: str) -> str:
    """Return the plural of a type's name in running text."""
    if word.endswith("f"):
        return f"{word[:-1]}ves"
    if word.endswith("fe"):
        return f"{word[:-2]}ves"
    endings = ("s", "x", "ch", "sh", "o")
    return f"{word}es" if word.endswith(endings) else f"{word}s"
