"""Tests data sets of the Hugging Face Hub: the real client, with a stub of its HTTP interface."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import PIL.Image
import pytest

from tests.visenv.data.hub_server import Hub, serve
from visenv.data.hub_snapshot import pinned
from visenv.data.open import open_data
from visenv.episodes import read_episodes
from visenv.errors import ConfigurationError

ROOT = Path(__file__).parents[3]
DATA = "vstar:hub:lab/stars"

pytestmark = pytest.mark.component("huggingface_hub")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve() as hub:
        yield hub


def stars(*answers: str) -> dict[str, bytes]:
    """Return the files of a V*Bench with one question for each answer."""
    image = io.BytesIO()
    PIL.Image.new("RGB", (60, 40)).save(image, "PNG")
    files = {}
    for number, answer in enumerate(answers):
        row = {"question": "Which?", "options": [answer, "other"]}
        files[f"direct_attributes/sa_{number}.json"] = json.dumps(row).encode()
        files[f"direct_attributes/sa_{number}.png"] = image.getvalue()
    return files


class Client:
    """Runs visenv in its own process, since the client reads HF_ENDPOINT when it is imported."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HF_HOME": str(folder / "home"),
            "HF_ENDPOINT": hub.url,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.env | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def open(self, *names: str, **env: str) -> list[dict[str, object]]:
        """Open data sets one after the other, and return their contents."""
        done = self.run("-c", OPEN, *names, **env)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def visenv(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("-c", VISENV, *words)


VISENV = "import sys; from visenv.cli import main; sys.exit(main())"
IMPATIENT = f"import time; time.sleep = lambda _: None; {VISENV}"
"""Does not wait. The client of the hub waits 23 s in all before its last try."""

OPEN = """
import json, sys
from visenv.data.open import open_data
for name in sys.argv[1:]:
    source = open_data(name)
    options = [source[k].ground_truth.options for k in range(len(source))]
    print(json.dumps({"revision": source.revision, "options": [sorted(each) for each in options]}))
"""


@pytest.fixture
def client(hub: Hub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path)


def test_name_with_a_revision_opens_the_branch_a_tag_or_a_commit(hub: Hub, client: Client) -> None:
    old = hub.push("lab/stars", stars("old"))
    hub.push("lab/stars", stars("old"), branch="v1")
    new = hub.push("lab/stars", stars("new", "newer"))
    branch, tag, commit = client.open(DATA, f"{DATA}@v1", f"{DATA}@{old}")
    assert branch == {"revision": new, "options": [["new", "other"], ["newer", "other"]]}
    assert tag == commit == {"revision": old, "options": [["old", "other"]]}


def test_data_set_is_downloaded_once_and_opens_without_the_network(
    hub: Hub, client: Client
) -> None:
    def downloads() -> list[str]:
        return [each for each in hub.requests if each.startswith("GET /datasets/")]

    commit = hub.push("lab/stars", stars("one"))
    first = client.open(DATA)
    assert len(downloads()) == 2  # one JSON file and one image
    hub.requests.clear()
    assert client.open(f"{DATA}@{commit}") == first
    assert downloads() == []  # huggingface_hub before 1.23 asks for the list of files
    hub.requests.clear()
    assert client.open(DATA, HF_HUB_OFFLINE="1") == first
    assert hub.requests == []


def test_episodes_hold_the_commit_and_are_rescored_after_the_branch_has_moved(
    hub: Hub, client: Client
) -> None:
    commit = hub.push("lab/stars", stars("one", "two"))
    done = client.visenv("eval", "ZoomVQA-v0", "--data", DATA, "--out", "out")
    assert done.returncode == 0, done.stderr
    hub.push("lab/stars", stars("three"))
    episodes = list(read_episodes(client.folder / "out" / "episodes.jsonl"))
    assert len(episodes) == 2
    for episode in episodes:
        assert json.loads(episode.env_spec)["kwargs"]["data"] == f"{DATA}@{commit}"
    done = client.visenv("rescore", "out/episodes.jsonl")
    assert "equal: 2" in done.stdout, done.stderr


def test_rows_of_the_hub_have_splits_and_configurations(hub: Hub, client: Client) -> None:
    image = stars("one")["direct_attributes/sa_0.png"]
    row = {"image": "photos/a.png", "question": "Which?", "answer": "red"}
    files = {"train/photos/a.png": image, "test/photos/a.png": image}
    for split in ("train", "test"):
        lines = [{**row, "id": number} for number in range(len(split))]
        text = "".join(json.dumps(each) + "\n" for each in lines)
        files[f"{split}/rows.jsonl"] = text.encode()
    declared = "".join(
        f"  - split: {split}\n    path: {split}/rows.jsonl\n" for split in ("train", "test")
    )
    files["README.md"] = (
        f"---\nconfigs:\n- config_name: all\n  data_files:\n{declared}---\n".encode()
    )
    commit = hub.push("lab/signs", files)
    both, test = client.open("rows:hub:lab/signs", "rows:hub:lab/signs?config=all&split=test")
    assert both == {"revision": commit, "options": [[]] * 9}
    assert test == {"revision": commit, "options": [[]] * 4}


def test_options_of_the_data_set_follow_the_revision(hub: Hub, client: Client) -> None:
    commit = hub.push("lab/stars", stars("one"))
    program = "import sys; from visenv.data.hub_snapshot import pinned; print(pinned(sys.argv[1]))"
    for given in (f"hrbench:hub:lab/stars@{commit[:40]}?size=8k", "hrbench:hub:lab/stars?size=8k"):
        done = client.run("-c", program, given)
        assert done.stdout == f"hrbench:hub:lab/stars@{commit}?size=8k\n", done.stderr


FAILURES = {
    "vstar:hub:lab/nothing": "RepositoryNotFoundError",
    "vstar:hub:lab/stars@v9": "RevisionNotFoundError",
    "vstar:hub:lab/stars@" + "0" * 40: "RevisionNotFoundError",
    "vstar:hub:../../etc": "HFValidationError",
    "vstar:hub:a b/c": "HFValidationError",
    "vstar:hub:": "hub:owner/name or hub:owner/name@revision",
    "vstar:hub:@main": "hub:owner/name or hub:owner/name@revision",
    "vstar:hub:lab/stars@": "hub:owner/name or hub:owner/name@revision",
    "vstr:hub:lab/stars": "There is no data set called 'vstr'. Did you mean 'vstar'?",
}


def test_download_that_fails_is_one_sentence(hub: Hub, client: Client) -> None:
    hub.push("lab/stars", stars("one"))
    program = """
import sys
from visenv.data.open import open_data
from visenv.errors import VisenvError
for name in sys.argv[1:]:
    try:
        open_data(name)
    except VisenvError as error:
        print(error)
"""
    done = client.run("-c", program, *FAILURES)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == len(FAILURES), said
    for line, expected in zip(said, FAILURES.values(), strict=True):
        assert expected in line


def test_download_that_breaks_off_is_an_error_and_is_taken_up_again(
    hub: Hub, client: Client
) -> None:
    hub.push("lab/stars", stars("one", "two"))
    hub.broken.add("direct_attributes/sa_1.json")
    done = client.run("-c", IMPATIENT, "eval", "ZoomVQA-v0", "--data", DATA, "--out", "out")
    assert done.returncode == 1
    *_, said = done.stderr.splitlines()  # the lines before are warnings
    assert said.startswith("visenv: hub:lab/stars cannot be downloaded: ")
    hub.broken.clear()
    (opened,) = client.open(DATA)
    assert len(opened["options"]) == 2  # type: ignore[arg-type]  # a list


def test_server_that_is_gone_is_one_sentence(hub: Hub, client: Client) -> None:
    done = client.run("-c", OPEN, DATA, HF_ENDPOINT="http://127.0.0.1:9")
    assert "DataError: hub:lab/stars cannot be downloaded: LocalEntryNotFoundError" in done.stderr


def test_names_that_are_not_of_the_hub_are_left_alone() -> None:
    for name in ("procedural", "vstar:/data/hub:x/y", "textvqa:folder?split=hub:a", "hub:a/b", ""):
        assert pinned(name) == name


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'visenv\[hub\]'"):
        open_data("vstar:hub:lab/stars")
