"""Runs vLLM's server for `VLLMServer`, and ends when the parent process has ended.

A trainer that was killed cannot stop its server, which would then keep its memory and port forever.
This program therefore reads standard input, to which the trainer never writes: it ends when the
trainer ends, for whatever reason, and removes the folder of its sockets.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import sys
import threading

from visenv.private_names import check_private_names

from .private_names import SERVER_NAMES

FOLDER_VARIABLE = "VISENV_SERVER_FOLDER"
"""Environment variable with the folder of the sockets, which is removed if the parent is killed."""


def _end_with_parent(folder: str) -> None:
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # its process group: the server and its children


def main() -> None:
    """Serve until standard input ends.

    Raises:
        ConfigurationError: If vLLM lacks a private name that is used here; the error is printed to
            the server's log, whose end `VLLMServer` shows.
    """
    check_private_names(SERVER_NAMES)
    watch = threading.Thread(target=_end_with_parent, args=[os.environ[FOLDER_VARIABLE]])
    watch.daemon = True
    watch.start()
    if "--media-io-kwargs" in sys.argv:
        from . import videos  # takes seconds; the trainer may end meanwhile

        videos.register()
    # Not `vllm serve`, which requires a distribution named vllm; the CPU build has another name.
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
