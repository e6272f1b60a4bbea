"""Implements each action of EB-ALFRED with ai2thor's actions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .actions import Skill
from .body import ActionExecutor, ActionResult, Body
from .scene import Point, Scene
from .tracker import Tracker

TRIES = 20
"""Maximum number of reachable positions that are tried to see an object."""

_NUDGES = ((0.0, 0.0), (0.0, 15.0), (0.0, -15.0), (15.0, 0.0), (-15.0, 0.0), (30.0, 0.0),
           (-30.0, 0.0))  # fmt: skip
"""Rotations to the right and down, in degrees, that are tried to put an object down."""

_KNIVES = ("Knife", "ButterKnife")


class Skills(Body):
    """Executes the actions of a scene.

    Args:
        actor: Executes ai2thor's actions.
        scene: The scene.
        reachable: The positions where the agent can stand.
        forgets: Whether `target` is that of EmbodiedBench: the object that was found last, until
            any action other than opening or putting down. Without one, an object that is put down
            is dropped.

    Attributes:
        tracker: Tracks heated, cooled, cleaned and delivered objects.
        found: The object that was found last.
        focus: The object that was used last.
        target: The receptacle into which an object in hand is put, ``""`` if there is none.
    """

    def __init__(
        self, actor: ActionExecutor, scene: Scene, reachable: Sequence[Point], forgets: bool = False
    ) -> None:
        super().__init__(actor, scene, reachable)
        self.forgets = forgets
        self.tracker = Tracker(scene)
        self.found = self.focus = self.target = ""

    def perform(self, skill: Skill) -> ActionResult:
        """Execute one of the numbered actions."""
        method = {
            "go_to": self.go_to,
            "pick": self.pick,
            "put": lambda name: self.put(),
            "drop": lambda name: self.drop(),
            "open_up": self.open_up,
            "close_up": self.close_up,
            "turn_on": lambda name: self.turn(name, True),
            "turn_off": lambda name: self.turn(name, False),
            "slice": self.slice,
        }[skill.verb]
        before = self.target
        if self.forgets and skill.verb == "put" and not before:
            return self.drop()
        result = method(skill.object)
        if self.forgets:
            self.target = self._target_after(skill, before)
        return result

    def _target_after(self, skill: Skill, before: str) -> str:
        """Return the target of EmbodiedBench after an action."""
        if skill.verb == "go_to":
            return skill.object
        return before if skill.verb in ("open_up", "put") else ""

    # ------------------------------------------------------------------ finding

    def go_to(self, name: str) -> ActionResult:
        """Go to the nearest reachable pose from which an object is visible.

        For an object inside a closed receptacle, the receptacle must be visible.
        """
        identity = self.scene.id_of(name)
        if not identity:
            return ActionResult("not_found")
        if identity == self.scene.held:
            return ActionResult("holding")
        seen = self.scene.shut_holder(identity) or identity
        at = self.scene.position(identity)
        nearest = sorted(
            self.reachable, key=lambda each: math.hypot(each[0] - at[0], each[2] - at[2])
        )
        first: Point | None = None
        for position in nearest[:TRIES]:
            if not self.teleport(position, at):
                continue
            first = first or position
            if self.is_visible(seen):
                break
        else:
            if first is None or not self.teleport(first, at):
                return ActionResult("unreachable")
        self.found = self.focus = name
        if self.scene.is_receptacle(identity):
            self.target = name
        return ActionResult()

    # ------------------------------------------------------------------ the hand

    def pick(self, kind: str) -> ActionResult:
        """Take the object of a type that was found, or the first one within reach."""
        identity = self._meant(kind)
        if not identity:
            return ActionResult("not_here")
        if self.scene.held:
            return ActionResult("hand_full")
        if not self.is_visible(identity):
            return ActionResult("shut_in")
        return self.do("PickupObject", objectId=identity)

    def _meant(self, kind: str) -> str:
        """Return the id of the object that a type refers to here, ``""`` if there is none."""
        scene = self.scene
        near = [
            each
            for each in scene.by_id
            if scene.kind_of(each) == kind and each != scene.held and self.is_visible(each)
        ]
        for name in (self.found, self.focus):
            if scene.id_of(name) in near:
                return scene.id_of(name)
        if near:
            return min(near, key=scene.place_key)
        found = scene.id_of(self.found)
        hidden = found and found != scene.held and scene.kind_of(found) == kind
        return found if hidden and scene.shut_holder(found) else ""

    def put(self) -> ActionResult:
        """Put the object in hand into the receptacle that was found or opened last."""
        scene, held = self.scene, self.scene.held
        if not held:
            return ActionResult("hand_empty")
        receptacle = scene.id_of(self.target)
        if receptacle in ("", held) or not scene.is_receptacle(receptacle):
            return ActionResult("no_receptacle")
        hider = scene.shut_holder(receptacle)
        if not self.is_visible(hider or receptacle):
            return ActionResult("no_receptacle")
        if hider or scene.is_shut(receptacle):
            return ActionResult("closed")
        is_carried = bool(scene.by_id[receptacle].get("pickupable"))
        if is_carried and scene.contents(held):
            return ActionResult("no_receptacle")
        if not self._put_into(held, scene.basin_of(receptacle)):
            return ActionResult("full")
        self._release(held)
        return ActionResult()

    def _put_into(self, held: str, receptacle: str) -> bool:
        """Put an object down, turning a little if it fails; return whether it succeeded."""
        agent = self.scene.metadata["agent"]
        position = (agent["position"]["x"], agent["position"]["y"], agent["position"]["z"])
        turn, down = agent["rotation"]["y"], agent["cameraHorizon"]
        for right, lower in _NUDGES:
            if (right or lower) and not self.pose(position, turn + right, down + lower):
                continue
            result = self.do(
                "PutObject",
                objectId=held,
                receptacleObjectId=receptacle,
                forceAction=True,
                placeStationary=True,
            )
            if not result.code:
                return True
        self.pose(position, turn, down)
        return False

    def drop(self) -> ActionResult:
        """Drop the object in hand."""
        held = self.scene.held
        if not held:
            return ActionResult("hand_empty")
        if self.do("DropHandObject", forceAction=True).code:
            return ActionResult("full")
        self._release(held)
        return ActionResult()

    def _release(self, identity: str) -> None:
        self.focus = self.scene.name_of(identity)
        self.tracker.put(identity)

    # ------------------------------------------------------------------ doors, switches, knives

    def open_up(self, name: str) -> ActionResult:
        """Open a receptacle, which becomes the `target` for the object in hand."""
        each = self.scene.find(name)
        reason = self._unusable(each, "openable", "not_openable")
        if each is None or reason:
            return ActionResult(reason)
        if each["isOpen"]:
            return ActionResult("already_open")
        if each.get("toggleable") and each.get("isToggled"):
            return ActionResult("is_on")
        result = self.do("OpenObject", objectId=each["objectId"])
        if not result.code:
            self.target = name
            inside = self.scene.holders_of(self.scene.id_of(self.found)) if self.found else []
            self.focus = self.found if each["objectId"] in inside else name
        return result

    def close_up(self, name: str) -> ActionResult:
        """Close a receptacle."""
        each = self.scene.find(name)
        reason = self._unusable(each, "openable", "not_openable")
        if each is None or reason:
            return ActionResult(reason)
        if not each["isOpen"]:
            return ActionResult("already_closed")
        result = self.do("CloseObject", objectId=each["objectId"])
        if not result.code:
            self.focus = name
            self.tracker.closed(each["objectId"])
        return result

    def turn(self, name: str, on: bool) -> ActionResult:
        """Turn an appliance or a lamp on or off."""
        each = self.scene.find(name)
        reason = self._unusable(each, "toggleable", "no_switch")
        if each is None or reason:
            return ActionResult(reason)
        if bool(each["isToggled"]) == on:
            return ActionResult("already_on" if on else "already_off")
        if on and each.get("openable") and each.get("isOpen"):
            return ActionResult("is_open")
        result = self.do("ToggleObjectOn" if on else "ToggleObjectOff", objectId=each["objectId"])
        if not result.code:
            self.focus = name
            if on:
                self.tracker.turned_on(each["objectId"])
        return result

    def slice(self, kind: str) -> ActionResult:
        """Slice an object with the knife in hand."""
        scene = self.scene
        identity = self._meant(kind)
        if not identity:
            return ActionResult("not_here")
        if not scene.held or scene.kind_of(scene.held) not in _KNIVES:
            return ActionResult("no_knife")
        each = scene.by_id[identity]
        if not each.get("sliceable") and not each.get("isSliced"):
            return ActionResult("not_sliceable")
        if not self.is_visible(identity):
            return ActionResult("shut_in")
        if each.get("isSliced"):
            return ActionResult("already_sliced")
        name = scene.name_of(identity)
        result = self.do("SliceObject", objectId=identity)
        if not result.code:
            self.focus = name
        return result

    def _unusable(self, each: Mapping[str, Any] | None, ability: str, code: str) -> str:
        """Return the reason why an object can never be opened, closed or switched, or ``""``."""
        if each is None:
            return "not_found"
        if not each.get(ability):
            return code
        return "" if self.is_visible(each["objectId"]) else "not_near"
