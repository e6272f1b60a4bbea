"""Writes instructions: their phrases, and references, which identify the object of a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from visenv.errors import ConfigurationError
from visenv.worlds.draws import shuffled

from ..furnish import Furnisher
from ..items import ITEMS, ItemLook, Split, looks_of, word_of

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


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Describes the object of a task.

    Attributes:
        words: The phrase in the instruction, with its article.
        kind: The type of the object.
        targets: The numbers of the objects that match.
        lookalikes: The numbers of the objects of the type that do not match.
    """

    words: str
    kind: str
    targets: tuple[int, ...]
    lookalikes: tuple[int, ...] = ()


def plain(furnisher: Furnisher, kind: str, avoid: Collection[str], dirty: bool) -> ObjectReference:
    """Refer to any object of a type; the house has one or two."""
    count = int(furnisher.rng.integers(1, 3))
    targets = tuple(furnisher.add(kind, avoid=avoid, dirty=dirty or None) for _ in range(count))
    return ObjectReference(article(word_of(kind)), kind, targets)


def by_use(furnisher: Furnisher, kind: str, avoid: Collection[str], dirty: bool) -> ObjectReference:
    """Refer to the only object of a type by its purpose."""
    return ObjectReference(
        ITEMS[kind].use, kind, (furnisher.add(kind, avoid=avoid, dirty=dirty or None),)
    )


def by_look(
    furnisher: Furnisher,
    kind: str,
    avoid: Collection[str],
    dirty: bool,
    chosen: tuple[str, int],
    apart: bool,
    colors: Sequence[str] = (),
) -> ObjectReference:
    """Refer to one of several objects of a type by its look.

    Args:
        furnisher: Adds the objects.
        kind: The type of the objects.
        avoid: Fixtures that must not contain any of them.
        dirty: Whether they are dirty.
        chosen: ``"color"``, ``"pattern"`` or ``"size"``, and the number of objects.
        apart: Whether each must be in a different fixture.
        colors: The colors of the objects, first that of the object of the task; random if empty.
    """
    rng = furnisher.rng
    attribute, count = chosen
    options = shuffled(rng, looks_of(kind, furnisher.split))
    if colors:
        options = sorted(
            (each for each in options if each[0] in colors), key=lambda each: colors.index(each[0])
        )
        if not options:
            raise ConfigurationError(f"There is no {kind} in one of the colors {tuple(colors)}.")
    first = options[0]
    others: list[tuple[str, object]] = []
    for color, pattern in options[1:]:
        differs = attribute != "pattern" or pattern != first[1]
        if differs and color not in {first[0], *(other for other, _ in others)}:
            others.append((color, pattern))
    looks = [
        ItemLook(color, pattern, "matte", "large" if place == 0 or attribute != "size" else "small")  # type: ignore[arg-type]
        for place, (color, pattern) in enumerate([first, *others[: count - 1]])
    ]
    # Objects that are seen one at a time can be compared only if they are seen from the same depth.
    among = furnisher.equally_near(avoid) if apart and attribute == "size" else None
    numbers: list[int] = []
    for look in looks:
        elsewhere = {furnisher.fixture_of(number) for number in numbers} if apart else set()
        around = {*avoid, *elsewhere}
        numbers.append(furnisher.add(kind, look, around, dirty=dirty or None, among=among))
    word = {"color": first[0], "pattern": first[1], "size": "largest"}[attribute]
    words = f"the {word} {word_of(kind)}"
    return ObjectReference(words, kind, (numbers[0],), tuple(numbers[1:]))


def by_place(
    furnisher: Furnisher, kind: str, avoid: Collection[str], dirty: bool, apart: bool
) -> ObjectReference:
    """Refer to one of four objects of a type by its neighbor.

    Each of the four is in a row with an object of the same two other types, in a different order,
    so that only the order identifies the object.
    """
    rng = furnisher.rng
    anchor, third = pick_two_kinds(furnisher, kind)
    orders: Sequence[tuple[str, str, str]] = (
        (kind, anchor, third),
        (anchor, kind, third),
        (kind, third, anchor),
        (anchor, third, kind),
    )
    numbers: list[int] = []
    for order in orders:
        elsewhere = {furnisher.fixture_of(number) for number in numbers} if apart else set()
        dirt = {kind: True} if dirty else {}
        row = furnisher.add_row(order, {*avoid, *elsewhere}, dirt)
        numbers.append(row[order.index(kind)])
    side = int(rng.integers(2))
    where = ("directly to the left of", "directly to the right of")[side]
    words = f"the {word_of(kind)} that is {where} {article(word_of(anchor))}"
    others = tuple(number for place, number in enumerate(numbers) if place != side)
    return ObjectReference(words, kind, (numbers[side],), others)


def pick_two_kinds(furnisher: Furnisher, kind: str) -> tuple[str, str]:
    """Return two further types of objects that cannot hold others."""
    options = [each for each, spec in ITEMS.items() if each != kind and not spec.cuts]
    one, other = shuffled(furnisher.rng, options)[:2]
    return one, other
