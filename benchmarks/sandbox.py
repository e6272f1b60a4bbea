"""Measures the time of a program in the sandbox against other ways to run it, and tests for leaks.

    python benchmarks/sandbox.py                     latency, all layers on, ratios of medians
    python benchmarks/sandbox.py --burst 64          64 concurrent programs
    python benchmarks/sandbox.py --soak 10000        leaks after 10,000 programs
    chrt -r 5 python benchmarks/sandbox.py           real-time priority, if other processes run

The other ways are a cold Python, the same inside bubblewrap, and the same inside firejail (with the
flags of a well-known trainer), in turn in the same run. Byte-code is always cached, and every way
has one thread. The other programs read the image from their directory, the sandbox gets it as an
input; the time ends when the written image is decoded here. The lower bound is `exec` in this
process, which isolates nothing.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import argparse
import gc
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import PIL.Image

from benchmarks.memory import memory_mib
from visenv.sandbox import INPUT_IMAGE, LocalBackend, Sandbox, SharedImage
from visenv.sandbox.local import Isolation
from visenv.types import Image

FULL_HD, EIGHT_K = (1280, 960), (7680, 4320)
CROP = "import cv2\ncv2.imwrite('path_to_output_image.jpg', image[300:556, 400:656])\n"
ROTATE = """import cv2
image = cv2.imread('path_to_input_image.jpg')
image = cv2.rotate(image, cv2.ROTATE_180)
cv2.imwrite('path_to_output_image.jpg', image)
"""
MAPPED = """import numpy as np
image = np.memmap('pixels.bin', np.uint8, 'c').reshape({height}, {width}, 3)
"""


class Task(NamedTuple):
    """Describes a task that all ways solve.

    Attributes:
        name: Name of the task.
        target: Target ratio of the time of a cold Python to the time of the sandbox.
        code: The program in the sandbox.
        peer: The program of the other ways, in a directory with `files`.
        images: Input images of the sandbox.
        files: Files of the directory.
    """

    name: str
    target: float
    code: str
    peer: str
    images: Mapping[str, bytes | SharedImage]
    files: Mapping[str, bytes]


def photograph(width: int, height: int) -> np.ndarray:
    """Return an image with about as much detail as a photograph: as a JPEG, 2.6 bits a pixel."""
    coarse = np.random.default_rng(0).integers(0, 256, (height // 12, width // 12, 3), np.uint8)
    picture = PIL.Image.fromarray(coarse).resize((width, height), PIL.Image.Resampling.BICUBIC)
    return np.array(picture)


def tasks() -> list[Task]:
    small, large = photograph(*FULL_HD), photograph(*EIGHT_K)
    jpeg = cv2.imencode(".jpg", small)[1].tobytes()
    return [
        Task("empty program", 15, "pass", "import cv2", {}, {}),
        _crop("crop of 1280x960", small),
        _crop("crop of 7680x4320", large),
        Task("rotated JPEG 1280x960", 5, ROTATE, ROTATE, {INPUT_IMAGE: jpeg}, {INPUT_IMAGE: jpeg}),
    ]


def _crop(name: str, pixels: np.ndarray) -> Task:
    peer = MAPPED.format(height=pixels.shape[0], width=pixels.shape[1]) + CROP
    shared = SharedImage(Image.from_pixels(pixels))
    return Task(name, 12, CROP, peer, {"image": shared}, {"pixels.bin": pixels.tobytes()})


# ------------------------------------------------------------------------------- latency


def in_sandbox(sandbox: Sandbox, task: Task) -> None:
    execution = sandbox.run(task.code, task.images)
    if execution.status != "ok" or (task.images and execution.image is None):
        raise RuntimeError(f"{task.name}: {execution}")


def by_command(command: list[str], directory: Path) -> None:
    subprocess.run(command, cwd=directory, check=True, stdin=subprocess.DEVNULL)
    take_image(directory)


def take_image(directory: Path) -> None:
    """Decode the written image; the sandbox returns decoded images."""
    output = directory / "path_to_output_image.jpg"
    if (directory / "expects").exists():
        np.asarray(PIL.Image.open(output))
        output.unlink()


def in_process(program: str, directory: Path) -> None:
    here = Path.cwd()
    os.chdir(directory)
    try:
        exec(compile(program, "peer", "exec"), {})  # noqa: S102  the lower bound
    finally:
        os.chdir(here)
    take_image(directory)


def commands(directory: Path) -> dict[str, list[str]]:
    """Return the command of each other way, if it is installed."""
    python = [sys.executable, "-I", str(directory / "program.py")]
    found = {"cold python": python}
    if bubblewrap := shutil.which("bwrap"):
        shown = {"/usr", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix}
        binds = [word for path in sorted(shown) for word in ("--ro-bind-try", path, path)]
        options = ["--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
        own = ["--bind", str(directory), str(directory), "--chdir", str(directory)]
        found["bubblewrap + python"] = [bubblewrap, *binds, *options, *own, *python]
    if firejail := shutil.which("firejail"):
        options = ["--quiet", "--noprofile", "--seccomp=socket", "--net=none"]
        found["firejail + python"] = [firejail, *options, *python]
    return found


def versions() -> str:
    """Return the machine and the versions of the programs."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(": ")[2]
            break
    programs = [f"python {platform.python_version()}", f"opencv {cv2.__version__}"]
    for name in ("bwrap", "firejail"):
        if path := shutil.which(name):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            programs.append(said.stdout.splitlines()[0])
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}; {', '.join(programs)}"


def compare(sandbox: Sandbox, task: Task, rounds: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        directory = Path(name)
        for file, content in task.files.items():
            (directory / file).write_bytes(content)
        (directory / "program.py").write_text(task.peer)
        if task.files:
            (directory / "expects").touch()
        ways: dict[str, Callable[[], None]] = {"sandbox": lambda: in_sandbox(sandbox, task)}
        for peer, command in commands(directory).items():
            ways[peer] = lambda command=command: by_command(command, directory)  # type: ignore[misc]
        ways["exec in this process"] = lambda: in_process(task.peer, directory)
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, act in ways.items():
                start = time.perf_counter()
                act()
                if number:  # the first round fills caches
                    times[way].append((time.perf_counter() - start) * 1000)
    report(task, times)


def report(task: Task, times: Mapping[str, list[float]]) -> None:
    own = statistics.median(times["sandbox"])
    print(f"{task.name}: target {task.target:g} times faster than a cold python")
    for way, each in times.items():
        median = statistics.median(each)
        ratio = "" if way == "sandbox" else f"   {median / own:6.2f} times the sandbox's"
        print(f"  {way:22} median {median:7.1f} ms   best {min(each):7.1f} ms{ratio}")
    for peer in {"bubblewrap + python", "firejail + python"} - times.keys():
        print(f"  {peer}: not installed")


# --------------------------------------------------------------------------- many, and leaks


def burst(sandbox: Sandbox, count: int) -> None:
    jpeg = cv2.imencode(".jpg", photograph(*FULL_HD))[1].tobytes()
    done: list[float] = []
    start = time.perf_counter()

    def run() -> None:
        if sandbox.run(ROTATE, {INPUT_IMAGE: jpeg}).image is not None:
            done.append(time.perf_counter() - start)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(
        f"burst of {count} rotations on {sandbox.workers} CPUs: {len(done)} done, "
        f"{count - len(done)} lost, {max(done):.2f} s, {count / max(done):.0f} a second"
    )


PROGRAMS = (
    "pass",
    "1 / 0",
    ROTATE,
    "import os\nos._exit(1)",
    "bytearray(8 << 30)",
    "import ctypes\nctypes.string_at(0)",
    "for n in range(99): open(f'{n}.bin', 'wb').write(bytes(9999))",
    "while True: print('x' * 9999)",
)


def soak(sandbox: Sandbox, count: int) -> None:
    jpeg = cv2.imencode(".jpg", photograph(320, 240))[1].tobytes()
    ended: dict[str, int] = {}

    def run(numbers: range) -> None:
        for number in numbers:
            execution = sandbox.run(PROGRAMS[number % len(PROGRAMS)], {INPUT_IMAGE: jpeg})
            ended[execution.status] = ended.get(execution.status, 0) + 1

    def several(total: int) -> None:
        workers = sandbox.workers
        threads = [
            threading.Thread(target=run, args=(range(place, total, workers),))
            for place in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    several(200)
    ended.clear()
    before = state(sandbox)
    start = time.perf_counter()
    several(count)
    seconds = time.perf_counter() - start
    after = state(sandbox)
    print(f"soak of {count} on {sandbox.workers} CPUs: {count / seconds:.0f} a second, {ended}")
    for name, value in before.items():
        print(f"  {name:32} before {value:10,}   after {after[name]:10,}")


def state(sandbox: Sandbox) -> dict[str, int]:
    """Return counts of everything that could leak, after all ended programs are cleaned up."""
    assert isinstance(sandbox.backend, LocalBackend)
    server = sandbox.backend.server_pid()
    time.sleep(2.0)
    gc.collect()
    scratch = sandbox.backend.hello().scratch
    memory = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
    return {
        "processes of the server": len(
            _entries(f"/proc/{server}/task/{server}/children", words=True)
        ),
        "processes of this client": len(
            _entries(f"/proc/self/task/{os.getpid()}/children", words=True)
        ),
        "descriptors of the server": len(_entries(f"/proc/{server}/fd")),
        "descriptors of this client": len(_entries("/proc/self/fd")),
        "files of programs": len(_entries(scratch)) if scratch else 0,
        "mounts of the server": len(Path(f"/proc/{server}/mountinfo").read_text().splitlines()),
        "resident KiB of the server": round(memory_mib(pid=server) * 1024),
        "resident KiB of this client": round(memory_mib() * 1024),
        "shared memory KiB, machine": int(memory["Shmem:"]),
        "kernel memory KiB, machine": int(memory["SUnreclaim:"]),
    }


def _entries(path: str, *, words: bool = False) -> list[str]:
    return Path(path).read_text().split() if words else [each.name for each in Path(path).iterdir()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--isolation", default="auto", choices=["auto", "namespaces", "landlock"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--burst", type=int, default=0)
    parser.add_argument("--soak", type=int, default=0)
    options = parser.parse_args()
    isolation: Isolation = options.isolation
    backend = LocalBackend(isolation=isolation)
    with Sandbox(backend) as sandbox:
        sandbox.start()
        print(f"$ python {' '.join(sys.argv)}")
        print(f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; {versions()}")
        ahead = "before" if os.sched_getscheduler(0) else "among"  # real-time scheduling or not
        print(
            f"load average {os.getloadavg()[0]:.1f} at the start, scheduled {ahead} other "
            f"processes, isolation by {backend.hello().mode}"
        )
        if options.burst:
            burst(sandbox, options.burst)
        if options.soak:
            soak(sandbox, options.soak)
        if not options.burst and not options.soak:
            for task in tasks():
                compare(sandbox, task, options.rounds)
            burst(sandbox, 64)
        print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
