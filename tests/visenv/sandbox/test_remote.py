"""Tests the backend of docs/sandbox.md: runs its code against a server of this test."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from visenv.envs.arft.coding.tools.code import CodeArguments, CodeTool
from visenv.errors import ServiceError
from visenv.sandbox import INPUT_IMAGE, Sandbox, SandboxBackend, SandboxLimits, shared_sandbox
from visenv.tools import Store
from visenv.types import Image

DOCUMENT = Path(__file__).parents[3] / "docs/sandbox.md"
IMPORTS = """
from __future__ import annotations
import base64, dataclasses, httpx
import numpy as np
from typing import Any
from visenv.errors import ServiceError
from visenv.sandbox import Execution, Program, SharedImage
from visenv.types import Image
"""
CROP = f"""
picture = cv2.imread("{INPUT_IMAGE}")
cv2.imwrite("path_to_output_image.jpg", picture[:2, :3])
picture.shape
"""


class Handler(BaseHTTPRequestHandler):
    """Runs the requested programs in its own sandbox."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["code"] == "fail":
            self.send_error(503)
            return
        files = {name: base64.b64decode(content) for name, content in asked["files"].items()}
        limits = SandboxLimits(**asked["limits"])
        done = shared_sandbox().run(asked["code"], files, output=asked["output"], limits=limits)
        said: dict[str, Any] = {
            key: getattr(done, key) for key in ("status", "stdout", "result", "error")
        }
        said["size"] = done.image and done.image.size
        said["pixels"] = done.image and base64.b64encode(done.image.pixels.tobytes()).decode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    @override
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def remote() -> Iterator[Sandbox]:
    """Yield a sandbox whose programs run in the documented backend."""
    (source,) = re.findall(
        r"```python\n(class RemoteBackend:.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(IMPORTS + source, "docs/sandbox.md", "exec"), names)  # noqa: S102  our own text
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        backend: SandboxBackend = names["RemoteBackend"](f"http://127.0.0.1:{server.server_port}")
        with Sandbox(backend, limits=SandboxLimits(wall_seconds=30.0)) as made:
            yield made
        server.shutdown()
        thread.join()


def test_documented_backend_runs_programs_elsewhere(remote: Sandbox) -> None:
    image = Image.from_pixels(np.full((6, 8, 3), 90, np.uint8))
    execution = remote.run(CROP, {INPUT_IMAGE: image})
    assert (execution.status, execution.result) == ("ok", "(6, 8, 3)")
    assert execution.image is not None
    assert execution.image.size == (3, 2)
    failed = remote.run("print('before')\n1 / 0")
    assert (failed.status, failed.stdout, failed.image) == ("error", "before\n", None)
    assert failed.error.endswith("ZeroDivisionError: division by zero")


def test_tool_uses_it_as_any_other(remote: Sandbox) -> None:
    image = Image.from_pixels(np.full((6, 8, 3), 90, np.uint8))
    store = Store()
    store.images["image"] = image
    result = CodeTool(sandbox=remote).call(CodeArguments(code=CROP), store)
    assert [part.size for part in result.parts if isinstance(part, Image)] == [(3, 2)]


def test_service_that_fails_is_no_result(remote: Sandbox) -> None:
    with pytest.raises(ServiceError, match="503"):
        remote.run("fail")
