"""Creates references, the phrases that identify the object of a task, and its look-alikes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from visenv.errors import ConfigurationError
from visenv.worlds.draws import shuffled

from ..furnish import Furnisher
from ..items import ITEMS, ItemLook, looks_of, word_of
from .phrases import article


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
