"""Tests names that other packages add, and many ways in which such a package can be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from visenv import plugins
from visenv.cli import main
from visenv.data.open import open_data
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, EpisodeError, UnknownNameError
from visenv.makers import env_maker, make_policy
from visenv.records import truth_from_json, truth_to_json
from visenv.registration import POLICIES, env_spec, load, register
from visenv.rollout.vector_env import EpisodePool
from visenv.simulators.survey import survey
from visenv.testing.toy import ENV_ID, Adder, make

Install = Callable[..., None]

GOOD = """
from visenv.testing.toy import make
from visenv.policies.random import RandomPolicy
class Calm(RandomPolicy): pass
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Yield a function that installs a package of one module with entry points, as pip does."""
    registered = dict(gym.registry)
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def add(package: str, module: str, code: str, **groups: dict[str, str]) -> None:
        (site / f"{module}.py").write_text(code)
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines: list[str] = []
        for group, entries in groups.items():
            lines.append(f"[visenv.{group}]")
            lines += [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        forget()

    def forget() -> None:
        plugins.installed.cache_clear()
        plugins._manifests.cache_clear()

    yield add
    forget()
    for env_id in set(gym.registry) - set(registered):
        del gym.registry[env_id]


def test_names_of_a_package_are_found(install: Install) -> None:
    names = {"good/Adder-v0": "good_names:make"}
    install(
        "good-names", "good_names", GOOD, environments=names, policies={"calm": "good_names:Calm"}
    )
    assert load("environment", "good/Adder-v0") is make
    assert type(make_policy("calm")).__name__ == "Calm"
    env = env_maker("good/Adder-v0", ["turns=3"])()
    assert isinstance(env.unwrapped, VisEnv)
    assert env.unwrapped.limits.turns == 3
    pool = gym.make_vec("good/Adder-v0", num_envs=2)
    assert type(pool).__name__ == "EpisodePool"
    pool.close()


def test_name_that_is_unknown_lists_those_of_packages(install: Install) -> None:
    install("some-names", "some_names", GOOD, policies={"calm": "some_names:Calm"})
    with pytest.raises(UnknownNameError, match=r"Did you mean 'calm'.* Known: calm, cot"):
        load("policy", "clam")


BROKEN_IMPORTS = {
    "raise RuntimeError('no\\nlicense')": "RuntimeError: no license (broken{n}.py, line 1)",
    "def (": "SyntaxError: ",
    "import package_that_is_missing": "No module named 'package_that_is_missing'",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "": "there is no 'Thing' in the module 'broken{n}'",
}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BROKEN_IMPORTS)))
@pytest.mark.parametrize(
    ("group", "kind", "words"),
    [
        ("environments", "environment", ("rollout", "broken/Thing-v0")),
        ("policies", "policy", ("rollout", ENV_ID, "--policy", "broken/Thing-v0")),
        ("data", "data set", ("rollout", "ZoomVQA-v0", "--data", "broken/Thing-v0:folder")),
    ],
)
def test_package_that_fails_to_import_is_named(
    number: int,
    group: str,
    kind: str,
    words: tuple[str, ...],
    install: Install,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    register(ENV_ID, "visenv.testing.toy:make")
    code, expected = list(BROKEN_IMPORTS.items())[number]
    module = f"broken{number}"
    install("broken-package", module, code, **{group: {"broken/Thing-v0": f"{module}:Thing"}})
    assert main([*words, *(("--out", str(tmp_path)) if words[0] == "rollout" else ())]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"visenv: The {kind} 'broken/Thing-v0' of the package 'broken-package' ")
    assert expected.format(n=number) in said
    assert said.count("\n") == 1


def test_algorithm_that_fails_to_import_is_named(install: Install) -> None:
    install("bad-loss", "bad_loss", "1 / 0", algorithms={"bad": "bad_loss:Bad"})
    with pytest.raises(ConfigurationError, match="'bad' of the package 'bad-loss' cannot be imp"):
        load("algorithm", "bad")


@pytest.mark.parametrize("value", ["module_alone", "a:b:c", "a:", ":b", "a b:c d", "..:x"])
def test_value_that_is_no_place_is_named(value: str, install: Install) -> None:
    install("odd-value", "odd_value", "", policies={"odd": value})
    with pytest.raises(ConfigurationError, match="'odd' of the package 'odd-value'"):
        load("policy", "odd")


def test_name_that_is_taken_is_reported_and_not_used(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"visenv/ZoomVQA-v0": "thief:make", "CartPole-v1": "thief:make"}
    install("thief", "thief", GOOD, environments=taken, policies={"random": "thief:Calm"})
    assert main(["list"]) == 1
    said = capsys.readouterr()
    for kind, name in (
        ("environment", "visenv/ZoomVQA-v0"),
        ("environment", "CartPole-v1"),
        ("policy", "random"),
    ):
        assert f"The {kind} {name!r} of the package 'thief' has a name that is reg" in said.err
    assert all(name in said.out for name in POLICIES)
    assert "thief" not in said.out
    assert env_spec("CartPole-v1").entry_point != "thief:make"
    assert load("policy", "random").__name__ == "RandomPolicy"


def test_name_of_two_packages_is_refused(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        names = {"calm": f"twin{number}:Calm", f"calm{number}": f"twin{number}:Calm"}
        install(f"twin-{number}", f"twin{number}", GOOD, policies=names)
    problem = "The policy 'calm' is added by the packages 'twin-1' and 'twin-2'; uninstall all but"
    with pytest.raises(ConfigurationError, match=problem):
        load("policy", "calm")
    assert main(["list"]) == 1
    assert problem in capsys.readouterr().err
    assert make_policy("calm1") is not None  # the other names of both packages work


def test_environment_needs_an_id(install: Install) -> None:
    install("odd-id", "odd_id", GOOD, environments={"not an id": "odd_id:make"})
    with pytest.raises(
        ConfigurationError, match="'odd-id' has the name 'not an id'; expected an id"
    ):
        env_spec("not an id")


CONSTRUCTORS = """
from visenv.testing import toy
def raises(): raise KeyError("seed")
def exits(): raise SystemExit("bye")
def none(): return None
def other():
    import gymnasium
    return gymnasium.make("CartPole-v1").unwrapped
def needs(*, model): return toy.make()
"""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("raises", r"KeyError: 'seed' \(makers_\w+\.py, line 3\)"),
        ("exits", "SystemExit: bye"),
        ("none", "must inherit from the gymnasium.Env class"),
        ("other", "CartPoleEnv does not extend VisEnv"),
        ("needs", "needs the option 'model': add --option model=VALUE"),
    ],
)
def test_environment_that_cannot_be_made_is_named(
    function: str, problem: str, install: Install
) -> None:
    module = f"makers_{function}"
    install("bad-makers", module, CONSTRUCTORS, environments={"bad/X-v0": f"{module}:{function}"})
    with pytest.raises(
        ConfigurationError,
        match=f"^The environment 'bad/X-v0' of the package 'bad-makers' .*{problem}",
    ):
        env_maker("bad/X-v0")


def test_unknown_option_of_an_environment_lists_those_there_are(install: Install) -> None:
    install(
        "few-options", "few_options", CONSTRUCTORS, environments={"few/X-v0": "few_options:needs"}
    )
    with pytest.raises(UnknownNameError, match=r"called 'modle'\. Did you mean 'model'"):
        env_maker("few/X-v0", ["modle=1"])


SOURCES = """
def raises(folder): raise KeyError("rows")
def missing(folder): open(folder + "/rows.txt")
def none(folder): return [folder]
"""


def test_data_set_that_cannot_be_opened_is_named(install: Install, tmp_path: Path) -> None:
    names = {name: f"bad_sources:{name}" for name in ("raises", "missing", "none")}
    install("bad-sources", "bad_sources", SOURCES, data=names)
    title = "The data set '{}' of the package 'bad-sources' cannot be opened: "
    with pytest.raises(ConfigurationError, match=title.format("raises") + "KeyError: 'rows'"):
        open_data(f"raises:{tmp_path}")
    with pytest.raises(ConfigurationError, match=title.format("missing") + "FileNotFoundError"):
        open_data(f"missing:{tmp_path}")
    with pytest.raises(ConfigurationError, match=title.format("none") + "list does not extend"):
        open_data(f"none:{tmp_path}")
    with pytest.raises(ConfigurationError, match="The data set 'bad_sources:none' cannot be open"):
        open_data(f"bad_sources:none:{tmp_path}")


MANIFEST = """
from visenv.family import EnvEntry, Family
from visenv.testing.toy import make
FAMILY = Family(
    environments={"whole/Adder-v0": EnvEntry("whole:make", "adds")},
    suites={"whole": "whole:SUITE"},
)
SUITE = "a table"
"""


def test_names_of_a_manifest_are_found(install: Install) -> None:
    install("whole-family", "whole", MANIFEST, manifests={"whole": "whole:FAMILY"})
    assert load("environment", "whole/Adder-v0") is make
    assert load("suite", "whole") == "a table"
    with pytest.raises(UnknownNameError, match="Did you mean 'whole'"):
        load("suite", "whol")


BROKEN_MANIFESTS = {
    "1 / 0": "cannot be imported: ZeroDivisionError: division by zero (broken_family0.py",
    "": "cannot be loaded: there is no 'FAMILY' in the module 'broken_family1'",
    "FAMILY = {}": "must be a visenv.family.Family, got {}",
    "from visenv.family import Family; FAMILY = Family(data=['decks'])": (
        "cannot be imported: ConfigurationError: data of a Family must map names to"
    ),
}


@pytest.mark.parametrize("number", range(len(BROKEN_MANIFESTS)))
def test_manifest_that_cannot_be_read_affects_only_its_names(
    number: int, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    code, problem = list(BROKEN_MANIFESTS.items())[number]
    path = f"broken_family{number}:FAMILY"
    install("broken-package", f"broken_family{number}", code, manifests={"b": path})
    install("whole-family", "whole", MANIFEST, manifests={"whole": "whole:FAMILY"})
    expected = f"The manifest {path!r} of the package 'broken-package' {problem}"
    assert load("suite", "whole") == "a table"
    with pytest.raises(UnknownNameError) as error:
        load("suite", "hidden")
    assert expected in str(error.value)
    assert main(["list"]) == 1
    said = capsys.readouterr()
    assert expected in said.err
    assert "whole (package whole-family)" in said.out


def test_simulator_of_a_package_that_cannot_be_imported_hides_no_other(install: Install) -> None:
    code = "from visenv.family import Family\nFAMILY = Family(simulators={'odd': 'nowhere:PARTS'})"
    before = survey()
    install("odd-simulator", "odd_simulator", code, manifests={"odd": "odd_simulator:FAMILY"})
    *others, odd = survey()
    assert others == before
    assert (odd.name, odd.there) == ("odd", False)
    assert "odd-simulator" in odd.detail


def test_manifest_cannot_replace_a_name_of_visenv(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from visenv.family import Family\nFAMILY = Family(scorers={'openai': 'thief:Judge'})"
    install("thief", "thief", code, manifests={"thief": "thief:FAMILY"})
    assert main(["list"]) == 1
    assert "The scorer 'openai' of the package 'thief' has a name" in capsys.readouterr().err
    assert load("scorer", "openai").__name__ == "OpenAIBackend"


TRUTH = """
from pydantic.dataclasses import dataclass
from visenv.types.ground_truth import STRICT, GroundTruth
@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class {name}(GroundTruth):
    card: int
"""


def test_record_types_of_a_package_are_saved_and_read(install: Install) -> None:
    code = TRUTH.format(name="OneTruth")
    install("one-record", "one_record", code, records={"OneTruth": "one_record:OneTruth"})
    truth = plugins.import_attribute("one_record:OneTruth", "")(card=3)
    record = truth_to_json(truth)
    assert (record["type"], record["fields"]["card"]) == ("OneTruth", 3)
    assert truth_from_json(record) == truth


def test_record_types_of_two_packages_are_not_mixed_up(install: Install) -> None:
    for number in (1, 2):
        module = f"both_records{number}"
        code = TRUTH.format(name="BothTruth")
        install(f"both-{number}", module, code, records={"BothTruth": f"{module}:BothTruth"})
    with pytest.raises(ConfigurationError, match="'both-1' and 'both-2'"):
        truth_from_json({"type": "BothTruth", "fields": {"card": 3}})


def test_record_type_that_no_package_names_is_refused() -> None:
    class Unnamed:
        pass

    with pytest.raises(EpisodeError, match=r"entry-point group 'visenv\.records'"):
        truth_to_json(Unnamed())


def test_module_and_id_imports_the_module_that_registers(install: Install) -> None:
    code = (
        "from visenv.registration import register\nregister('own/X-v0', 'visenv.testing.toy:make')"
    )
    install("no-entry-points", "own_envs", code)
    with pytest.raises(UnknownNameError, match="is module:Id or module:Class"):
        env_spec("own/X-v0")
    assert env_spec("own_envs:own/X-v0").id == "own/X-v0"
    assert env_spec("own/X-v0").id == "own/X-v0"  # the module is imported now
    assert load("environment", "own_envs:own/X-v0") is make
    with pytest.raises(ConfigurationError, match="'own_envs' does not register the id 'own/Y-v0'"):
        env_spec("own_envs:own/Y-v0")


def test_module_and_class_needs_no_registration() -> None:
    name = "visenv.testing.toy:make"
    assert env_spec(name).id == name
    assert name not in gym.registry
    assert load("environment", name) is make
    assert load("environment", "visenv.testing.toy:Adder") is Adder
    env = env_maker(name)()
    assert env.spec is not None
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).spec == env.spec


@pytest.mark.parametrize(
    "name",
    ["no_such_module:X", "visenv.testing.toy:Nothing", ":", "visenv.testing.toy:", ":X", "a::b"],
)
def test_place_that_does_not_exist_is_one_sentence(name: str) -> None:
    for kind in ("environment", "policy"):
        with pytest.raises(ConfigurationError) as error:
            load(kind, name)
        assert repr(name) in str(error.value)
        assert "\n" not in str(error.value)


def test_environment_of_gymnasium_gets_the_pool_by_one_line() -> None:
    env_id = "pooled/Adder-v0"
    gym.register(env_id, "visenv.testing.toy:make")
    gym.spec(env_id).vector_entry_point = f"visenv.rollout.vector_entry_points:{env_id}"
    pool = gym.make_vec(env_id, num_envs=2)
    try:
        assert isinstance(pool, EpisodePool)
        observations, _ = pool.reset(seed=[3, 3])
        assert observations["text"][0] == observations["text"][1] != ""
    finally:
        pool.close()
        del gym.registry[env_id]


def test_registering_the_same_again_changes_nothing() -> None:
    register(ENV_ID, "visenv.testing.toy:make")
    before = gym.registry[ENV_ID]
    register(ENV_ID, "visenv.testing.toy:make")
    assert gym.registry[ENV_ID] is before


def test_long_error_is_cut() -> None:
    said = plugins.describe_error(ValueError("x" * 10_000))
    assert said == f"ValueError: {'x' * 300}…"
