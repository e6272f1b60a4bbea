"""Implements the simulator of `visenv/Libero-v0`: LIBERO behind `visenv.simulators.protocol`.

A task is ``{"world": {"suite": str, "task": int, "seed": int}, "init": int, "settle": int}``. The
first reset of a world builds the model and takes 1 to 2 s; later resets restore a snapshot.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from visenv.simulators.protocol import Facts

from . import packages, state
from .initial_states import initial_states

SETTLING = [0.0] * 6 + [-1.0]
"""The action of the settling steps: no motion, with an open gripper."""

CAMERAS = {"agentview": "agentview", "wrist": "robot0_eye_in_hand"}
"""LIBERO's cameras by visenv's names."""

_STARTS = 64
"""Number of start states that are cached."""


class LiberoSimulator:
    """Runs one LIBERO environment at a time, of any suite."""

    def __init__(self) -> None:
        self.env: Any = None
        self.world: dict[str, Any] = {}
        self._suites: dict[str, Any] = {}
        self._inits: Any = None
        self._built = b""
        self._starts: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._context: Any = None
        self._film: list[Any] = []
        # The frames of start states are rendered once, which saves time in short episodes.
        self._start_key: Any = None
        self._start_frames: dict[Any, dict[str, Any]] = {}

    # ------------------------------------------------------------------ the protocol

    def start(self, options: Mapping[str, Any]) -> Facts:
        """Import LIBERO. Options: ``assets``, a folder."""
        return packages.import_libero(str(options.get("assets", "")))

    def reset(self, task: Mapping[str, Any]) -> Facts:
        """Begin an episode at a stored initial state, after the settling steps."""
        world = dict(task["world"])
        if self.env is None or world != self.world:
            self._build(world)
        self._start_key = None
        if task.get("start"):
            self._settle(np.asarray(task["start"], float), int(task["settle"]))
            return self.facts()
        key = (int(task["init"]), int(task["settle"]))
        self._start_key = key
        if not 0 <= key[0] < len(self._inits):
            raise ValueError(
                f"There are {len(self._inits)} initial states; there is no number {key[0]}."
            )
        if key in self._starts:
            state.load(self.env, self._starts[key])
            self._starts.move_to_end(key)
        else:
            self._settle(self._inits[key[0]], key[1])
            self._starts[key] = state.save(self.env)
            while len(self._starts) > _STARTS:
                self._start_frames.pop(self._starts.popitem(last=False)[0], None)
        return {**self.facts(), "initial_states": len(self._inits)}

    def act(self, request: Mapping[str, Any]) -> Facts:
        """Take actions until one succeeds, or execute another request.

        Requests: ``{"actions": rows}`` of seven numbers from -1 to 1; ``{"plan": steps}`` and
        ``{"expert": steps}`` (`expert.plan` and `expert.play`); ``{"tasks": suite}``;
        ``{"demonstrations": file}``.
        """
        self._start_key = None
        if "plan" in request:
            from .expert import plan

            return {"rows": plan(self, int(request["plan"]))}
        if "expert" in request:
            from .expert import play

            rows, is_success = play(self, int(request["expert"]))
            return {**self._facts_after(is_success), "rows": rows, "taken": len(rows)}
        if "tasks" in request:
            return {"tasks": self._list(str(request["tasks"]))}
        if "demonstrations" in request:
            from .demonstrations import read

            return read(str(request["demonstrations"]))
        every = request.get("every")
        taken = 0
        self._film = []
        for row in request["actions"]:
            is_success = self.step(row)
            taken += 1
            if every:
                state.refresh(self.env)
                self._film.append(self.frames(every))
            if is_success:
                break
        return {**self._facts_after(is_success), "taken": taken}

    def frames(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Render cameras: ``{"side": pixels, "cameras": names, "turned": bool}``.

        robosuite's observation has its lowest row first. Upright frames are this observation with
        the rows reversed. Frames with ``turned`` are this observation rotated by 180°: they are
        also upright, but mirrored left to right. ``{"film": True}`` returns the frames of every
        action of the last request that recorded them.
        """
        if request.get("film"):
            return {
                f"{number:03d} {name}": frame
                for number, pictures in enumerate(self._film)
                for name, frame in pictures.items()
            }
        if self._start_key is None:
            return self._pictures(request)
        kept = self._start_frames.setdefault(self._start_key, {})
        wanted = repr(sorted(request.items()))
        if wanted not in kept:
            kept[wanted] = self._pictures(request)
        return {name: frame.copy() for name, frame in kept[wanted].items()}

    def _pictures(self, request: Mapping[str, Any]) -> dict[str, Any]:
        side = int(request["side"])
        pictures = {}
        for name in request["cameras"]:
            raw = self._draw(CAMERAS[name], side)  # robosuite's: the first row is the lowest
            rows = raw[::-1, ::-1] if request.get("turned") else raw[::-1]
            pictures[name] = np.ascontiguousarray(rows)
        return pictures

    def snapshot(self) -> bytes:
        """Return the state."""
        return state.save(self.env)

    def restore(self, snapshot: bytes) -> Facts:
        """Restore a state of the current task."""
        self._start_key = None
        state.load(self.env, snapshot)
        return self.facts()

    def close(self) -> None:
        """Free the environment."""
        if self.env is not None:
            self._free_context()
            self.env.close()
            self.env = None
            gc.collect()

    # ------------------------------------------------------------------ the environment

    def step(self, row: Any) -> bool:
        """Take one action, seven numbers from -1 to 1; return whether the goal holds."""
        self.env.step(np.asarray(row, float))
        return self.is_success()

    def is_success(self) -> bool:
        """Return whether the goal holds."""
        return bool(self.env._check_success())

    def facts(self) -> Facts:
        """Return the goal predicates and the robot's state.

        ``state`` is the position of the hand (3, m), its rotation as an axis times the angle (3,
        rad) and the positions of the two fingers (2, m), as LIBERO's data sets have it.
        """
        env = self.env
        goals = [
            [" ".join(map(str, goal)), bool(env._eval_predicate(goal))]
            for goal in env.parsed_problem["goal_state"]
        ]
        return {
            "success": all(held for _, held in goals),
            "goals": goals,
            "state": [float(each) for each in self.robot_state()],
        }

    def _facts_after(self, is_success: bool) -> Facts:
        """Return the facts; the success is the benchmark's, from the poses that a step leaves."""
        state.refresh(self.env)
        facts = self.facts()
        goals = [[name, True] for name, _ in facts["goals"]] if is_success else facts["goals"]
        return {**facts, "goals": goals, "success": is_success}

    def robot_state(self) -> Any:
        """Return the eight numbers of the robot's state."""
        from robosuite.utils import transform_utils

        robot, data = self.env.robots[0], self.env.sim.data
        rotation = data.get_body_xquat(robot.robot_model.eef_name)
        quaternion = transform_utils.convert_quat(rotation, to="xyzw")
        fingers = [data.qpos[each] for each in robot._ref_gripper_joint_pos_indexes]
        hand = data.site_xpos[robot.eef_site_id]
        return np.concatenate([hand, transform_utils.quat2axisangle(quaternion), fingers])

    def _build(self, world: Mapping[str, Any]) -> None:
        from libero.libero.envs.bddl_utils import get_problem_info
        from libero.libero.envs.env_wrapper import TASK_MAPPING, suite

        self.close()
        self._starts.clear()
        self._start_frames.clear()
        benchmark, number = self._suite(world["suite"]), int(world["task"])
        if not 0 <= number < benchmark.n_tasks:
            raise ValueError(
                f"{world['suite']} has {benchmark.n_tasks} tasks; there is no number {number}."
            )
        bddl = benchmark.get_task_bddl_file_path(number)
        make = TASK_MAPPING[get_problem_info(bddl)["problem_name"]]
        self.env = make(
            bddl,
            robots=["Panda"],
            controller_configs=suite.load_controller_config(default_controller="OSC_POSE"),
            gripper_types="default",
            initialization_noise=None,
            use_camera_obs=False,
            has_renderer=False,
            has_offscreen_renderer=False,
            control_freq=20,
            horizon=10**9,
            ignore_done=True,
            hard_reset=True,
            camera_names=list(CAMERAS.values()),
        )
        # Observations are computed from the state on demand. robosuite would compute all of them
        # in each of the 25 physics steps of an action.
        self.env._update_observables = _nothing
        self.env._get_observations = _no_observations
        self._inits = initial_states(benchmark.tasks[number])
        self.world = dict(world)
        self.env.seed(int(world["seed"]))
        self.env.reset()
        self._built = state.save(self.env)

    def _settle(self, start: Any, steps: int) -> None:
        state.load(self.env, self._built)
        if start.shape != self._inits[0].shape:
            raise ValueError(f"A state of this task must have {self._inits.shape[1]} numbers.")
        self._set_state(start)
        for _ in range(steps):
            self.step(SETTLING)
        state.refresh(self.env)

    def _set_state(self, flat: Any) -> None:
        """Set time, positions and velocities, as LIBERO's ``set_init_state`` does."""
        self.env.sim.set_state_from_flattened(flat)
        self.env.sim.forward()
        self.is_success()
        self.env._post_process()

    def _suite(self, name: str) -> Any:
        if name not in self._suites:
            from libero.libero import benchmark

            self._suites[name] = benchmark.get_benchmark(name)()
        return self._suites[name]

    def _list(self, name: str) -> list[list[Any]]:
        benchmark = self._suite(name)
        return [[task.name, task.language, len(initial_states(task))] for task in benchmark.tasks]

    def _draw(self, camera: str, side: int) -> Any:
        sim = self.env.sim
        if self._context is None or self._context.sim is not sim:
            from robosuite.utils.binding_utils import MjRenderContextOffscreen

            self._context = MjRenderContextOffscreen(sim, device_id=-1)
            self._context.vopt.geomgroup[0] = 0  # collision shapes
            self._context.vopt.geomgroup[1] = 1
        number = sim.model.camera_name2id(camera)
        self._context.render(width=side, height=side, camera_id=number)
        return self._context.read_pixels(side, side, depth=False)

    def _free_context(self) -> None:
        context: Any | None = self._context
        self._context = None
        if context is not None:
            context.con.free()
            context.gl_ctx.free()


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Replace `_update_observables` by a function without effect."""


def _no_observations(*_args: Any, **_kwargs: Any) -> dict[str, Any]:
    return {}
