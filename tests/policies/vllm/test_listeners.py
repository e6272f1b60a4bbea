"""Tests that an engine in a process of its own listens as SECURITY.md says, and works there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.listeners import family, listeners, require_listed

pytestmark = [
    pytest.mark.component("vllm", "torch", "transformers"),
    pytest.mark.timeout(900),
    pytest.mark.soak,
]

# Starts an engine in a process of its own, sends it weights, and waits for a line.
ENGINE = """
import sys
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm import VLLMPolicy

if __name__ == "__main__":  # vLLM spawns its processes
    options = {"kv_cache_memory_bytes": 64 * 2**20}
    policy = VLLMPolicy(sys.argv[1], context=512, options=options)
    trained = TransformersPolicy(sys.argv[1], threads=1)
    policy.load(trained.network.model.state_dict().items(), 1)
    print("loaded", flush=True)
    sys.stdin.readline()
    policy.close()
"""


@pytest.mark.attack("servers: the table of listeners is complete")
def test_engine_in_a_process_of_its_own_listens_as_documented(
    qwen3_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "engine.py").write_text(ENGINE)
    with subprocess.Popen(
        [sys.executable, tmp_path / "engine.py", qwen3_folder],
        env=os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            assert process.stdout.readline() == "loaded\n"
            found = listeners(family(process.pid))
            require_listed("vLLM engine in a process of its own", found)
        finally:
            process.stdin.close()
    folders = {Path(socket.place).parent for socket in found if not socket.port}
    assert len(folders) == 1
    assert not folders.pop().exists()  # removed at the end
