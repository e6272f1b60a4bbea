"""The program of `VLLMServer`: vLLM's server, which ends when its parent process has.

A trainer that was killed cannot stop its server, which would keep its memory and port for ever. So
this reads what the trainer never writes to: at the end of it the trainer is gone, however it went.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading

from visenv.private_names import check_private_names

from .private_names import SERVER_NAMES


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)  # the server's own group: itself and its children


def main() -> None:
    """Serve until standard input ends.

    Raises:
        ConfigurationError: If vLLM lacks a private name that is used here; the error is printed to
            the server's log, whose end `VLLMServer` shows.
    """
    check_private_names(SERVER_NAMES)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "--media-io-kwargs" in sys.argv:
        from . import videos  # takes seconds, in which the trainer may end

        videos.register()
    # Not `vllm serve`: that asks for a distribution called vllm, and the CPU build is another.
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
