"""Lists the places that write files, and the places that turn a name into code or a program.

A new place fails these tests until it uses `visenv.files` or `visenv.received`, or is added here
with the reason why no file of a stranger reaches it.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("visenv", "envs", "policies", "algos")
LINKS = ("visenv/envs", "visenv/policies", "visenv/algos", "visenv/recipes")

# ------------------------------------------------------------------------------------------ writing

WRITING = {
    *("write_text", "write_bytes", "mkdir", "touch", "symlink_to", "hardlink_to", "rename"),
    *("copy", "copy2", "copyfile", "copytree", "move", "savefig", "savez", "savez_compressed"),
    *("save_file", "save_pretrained", "save", "open", "FileLock", "connect"),
}
SAFE_RECEIVERS = ("partial", "manifest")
"""Names of the temporary paths of `replacing`."""

OWN_FOLDER = "a temporary folder of this process"
PERSON = "the folder that contains a file which the person names; the file itself is checked"

WRITERS = {
    "visenv/child_process/program.py": "a file of /proc",
    "visenv/files.py": "the functions themselves",
    "visenv/curation/journal.py": PERSON,
    "visenv/decoding/sqlite.py": "reads SQLite",
    "visenv/episodes/files.py": PERSON,
    "visenv/exports/parquet.py": PERSON,
    "visenv/retrieval/vector_store.py": "checks the name of the lock",
    "visenv/scorers/backends/recorded.py": PERSON,
    "visenv/scorers/cache.py": "checks the names of the files of SQLite",
    "visenv/search/recorded.py": PERSON,
    "visenv/search/words.py": "SQLite at a path of `replacing`",
    "visenv/simulators/install.py": "the virtual environment that the person installs",
    "visenv/sandbox/guest/cell.py": OWN_FOLDER,
    "visenv/sandbox/guest/root.py": OWN_FOLDER,
    "visenv/search/corpus.py": PERSON,
    "envs/embodied/simulators/habitat/problem.py": OWN_FOLDER,
    "envs/embodied/simulators/habitat/replica_task.py": OWN_FOLDER,
    "envs/libero/simulator/packages.py": OWN_FOLDER,
    "envs/mags/magnifier/small.py": "writes weights into the source, by hand",
    "policies/tokens/processor.py": "`save_model` checks the folder before",
    "policies/transformers/checkpoint.py": "checks the folder and all files in it",
    "policies/transformers/lora.py": "`save_model` checks the folder before",
    "policies/vllm/adapter.py": OWN_FOLDER,
    "policies/vllm/control.py": "connects to a socket",
    "policies/vllm/server.py": "a log with a random name",
    "policies/vllm/transfer.py": OWN_FOLDER,
    "policies/vllm/videos.py": "writes to memory",
    "algos/comparison/picture.py": "a picture at a path of `replacing`",
    "algos/experiment/folder.py": "links that visenv makes",
    "algos/experiment/curves.py": "a picture at a path of `replacing`",
    "algos/trainer/checkpoint.py": "in a new folder (`empty_folder`)",
    "algos/trainer/phase_folder.py": "checks the name of the lock",
    "algos/trainer/optimizer_shards.py": "in a new folder, or at a path of `replacing`",
}

# ---------------------------------------------------------------------------------------- resolving

RESOLVING = {
    *("importlib.import_module", "plugins.import_module", "plugins.import_attribute"),
    *("import_attribute", "import_module", "__import__", "exec", "eval", "gym.make", "os.execvp"),
    *("EnvSpec.from_json", "pickle.load", "pickle.loads", "torch.load", "np.load", "yaml.load"),
    *("yaml.safe_load", "runpy.run_module", "runpy.run_path", "subprocess.run", "os.system"),
    *("subprocess.Popen", "load_env_creator", "joblib.load", "dill.loads", "cloudpickle.loads"),
}

CONSTANT = "a name in the source"
OWN_PROCESSES = "written by a process of the same run, which holds a key or inherited a pipe"

RESOLVERS = {
    "algos/experiment/recipe_files.py": "registered recipes, and names that `registration` has "
    "checked",
    "envs/embodied/world/render/child.py": OWN_PROCESSES,
    "visenv/__init__.py": CONSTANT,
    "visenv/child_process/program.py": "a class that the source names; `SimulatorSpec.of` checks "
    "the interpreter of a simulator, tested with the episodes",
    "visenv/cli/__init__.py": CONSTANT,
    "visenv/cli/saved_episodes.py": "the program that the system has for pictures",
    "visenv/decoding/pictures.py": CONSTANT,
    "visenv/evaluation/controls.py": "the spec of an environment that exists already",
    "visenv/evaluation/saved_env.py": "episodes: tests/visenv/evaluation/test_received_episodes.py",
    "visenv/family.py": "the module `make` of the package that asks",
    "visenv/plugins.py": "installed packages, and names that `registration` has checked",
    "visenv/private_names.py": CONSTANT,
    "visenv/provenance.py": "git, in the folder of visenv",
    "visenv/records.py": "types of events and ground truths: registered names only, tested with "
    "the episodes",
    "visenv/registration.py": "`require_trust`, tested with the episodes",
    "visenv/rewards/named.py": "`require_trust`, tested with the episodes",
    "visenv/rollout/subset_vector_env.py": "the spec of a person's pool, sent to a worker",
    "visenv/sandbox/fork_server.py": CONSTANT,
    "visenv/sandbox/guest/preload.py": CONSTANT,
    "visenv/sandbox/guest/program.py": "the program of a policy, inside the sandbox",
    "visenv/scorers/services.py": OWN_PROCESSES,
    "visenv/simulators/child.py": CONSTANT,
    "visenv/simulators/host.py": CONSTANT,
    "visenv/simulators/install.py": "the interpreter of the person",
    "visenv/simulators/survey.py": "the interpreter of the person",
    "visenv/testing/sameness.py": "an environment that exists already",
    "envs/arft/coding/repairs.py": "lines in the source with numbers of a checked ground truth",
    "envs/embodied/simulators/habitat/problem.py": "YAML without objects",
    "envs/embodied/simulators/habitat/replica_task.py": "YAML without objects",
    "envs/embodied/simulators/habitat/simulator.py": CONSTANT,
    "envs/embodied/simulators/thor/launch.py": "`find_player` checks the player, tested with the "
    "episodes",
    "envs/libero/simulator/initial_states.py": "tensors only (weights_only)",
    "envs/mags/magnifier/small.py": "an array without pickles",
    "envs/mags/magnifier/weights.py": "tensors only (weights_only)",
    "policies/vllm/__init__.py": CONSTANT,
    "policies/vllm/serve.py": CONSTANT,
    "policies/vllm/server.py": CONSTANT,
    "policies/vllm/videos.py": "an array without pickles",
    "algos/trainer/distributed.py": OWN_PROCESSES,
    "algos/trainer/optimizer_shards.py": "tensors only (weights_only)",
}


@cache
def calls() -> list[tuple[str, ast.Call, str]]:
    """Return every call in the source, with its file and the text of the called function."""
    files = {path.relative_to(ROOT).as_posix(): path
             for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))}  # fmt: skip
    return [
        (name, node, ast.unparse(node.func))
        for name, path in files.items()
        if not name.startswith(LINKS)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]


def writes(node: ast.Call, function: str) -> bool:
    receiver, _, last = function.rpartition(".")
    if last not in WRITING or receiver in (*SAFE_RECEIVERS, "re", "dataclasses"):
        return False
    if last in ("write_text", "copy", "connect") and not receiver:
        return False  # `visenv.files.write_text`, and functions of the module
    if last in ("copy", "save"):
        return receiver in ("shutil", "torch")
    if last == "open":
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        return any(isinstance(mode, str) and {*mode} <= {*"rwaxbt+"} and {*mode} & {*"wax+"}
                   for mode in modes)  # fmt: skip
    return True


@pytest.mark.attack("files: nothing is written through a link")
def test_writers_use_functions_that_follow_no_link_or_give_a_reason() -> None:
    assert {name for name, node, function in calls() if writes(node, function)} == {*WRITERS}


@pytest.mark.attack("files: an episode runs no code")
def test_places_that_turn_a_name_into_code_are_listed_with_their_guard() -> None:
    assert {name for name, _, function in calls() if function in RESOLVING} == {*RESOLVERS}


@pytest.mark.attack("files: an index or a model folder runs no code")
def test_models_and_arrays_are_loaded_without_code_everywhere() -> None:
    found = {
        (name, function)
        for name, node, function in calls()
        for options in [{each.arg: ast.unparse(each.value) for each in node.keywords}]
        if (function.endswith(".from_pretrained") and name != "visenv/pretrained.py")
        or (function == "torch.load" and options.get("weights_only") != "True")
        or (function == "np.load" and options.get("allow_pickle") != "False")
        or (function == "SentenceTransformer" and options.get("trust_remote_code") != "False")
        or function in ("yaml.load", "pickle.load", "joblib.load")
    }
    assert found == set()
