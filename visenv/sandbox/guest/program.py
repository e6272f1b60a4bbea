"""Runs a program and reports its last value, its traceback and its output image.

This code runs after the lockdown, in the same process as the program, which can manipulate every
result. The client therefore trusts none of it: it checks every number and copies a bounded number
of bytes.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import mmap
import os
import resource
import sys
import traceback
import types
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn

from . import preload, wire

SOURCE = "<program>"
"""The file name of the program in its tracebacks."""

PREDEFINED = {"cv2": "cv2", "np": "numpy", "Image": "PIL.Image"}
"""Names that a program can use without importing them, if the server has loaded the module."""

_FRAMES = 8

_ROOM = 12 << 20  # bytes: a few images of 1280x960

_REHEARSAL = """
import io
content = cv2.imencode(".jpg", np.zeros((64, 64, 3), np.uint8))[1]
cv2.cvtColor(cv2.imdecode(content, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
Image.open(io.BytesIO(content)).load()
"""


def rehearse() -> None:
    """Run typical operations before a program arrives, because first use of a page costs time."""
    _outcome(_REHEARSAL, {})
    bytearray(_ROOM)  # after freeing this, the C library no longer uses mmap for this size,
    b"".ljust(_ROOM, b"\1")  # but its heap, whose pages are present after this line


def run(code: str, names: Mapping[str, Any], output: str, limits: Mapping[str, int]) -> NoReturn:
    """Run the program, report the result, and end the process.

    Args:
        code: The text of the program.
        names: Predefined values by name.
        output: The path of its output image.
        limits: ``image_pixels``, ``file_bytes`` and ``background``, a color of 24 bits.
    """
    try:
        result, error = _outcome(code, names)
        _flush()
        report = _collected(output, limits)._replace(result=result, error=error)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu = int(1e6 * (usage.ru_utime + usage.ru_stime))
        os.pwrite(wire.REPORT, report._replace(cpu=cpu, memory=usage.ru_maxrss).pack(), 0)
        os.closerange(1, 3)  # the client waits for the end of the output
    finally:
        os._exit(0)


def _outcome(code: str, names: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the result of the last expression and the traceback; one of them is empty."""
    try:
        value = _execute(code, names)
        return b"" if value is None else _encoded(repr(value)), b""
    except BaseException as error:  # noqa: BLE001  every exception of a program is its result
        return b"", _encoded(_told(error))


def _told(error: BaseException) -> str:
    """Return the text of an exception, whose class may fail to format it."""
    try:
        if isinstance(error, SystemExit):
            return "" if error.code in (None, 0) else f"SystemExit: {error.code}"
        return _traceback(error)
    except MemoryError:
        return "MemoryError"
    except BaseException:  # noqa: BLE001  this calls code of the program
        return "The program raised an exception that cannot be shown."


def _flush() -> None:
    """Flush the streams, if the program did not replace or close them."""
    for name in ("__stdout__", "stdout"):
        with contextlib.suppress(BaseException):
            vars(sys)[name].flush()


def _execute(code: str, names: Mapping[str, Any]) -> Any:
    linecache.cache[SOURCE] = (len(code), None, code.splitlines(keepends=True), SOURCE)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    scope = vars(module)
    scope.update({name: sys.modules[to] for name, to in PREDEFINED.items() if to in sys.modules})
    scope.update(names)
    tree = ast.parse(code, SOURCE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, SOURCE, "exec"), scope)  # noqa: S102  the purpose of the sandbox
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), SOURCE, "eval"), scope)  # noqa: S307


def _traceback(error: BaseException) -> str:
    """Return the traceback as the interpreter prints it, from the program's first frame."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != SOURCE:
        trace = trace.tb_next
    error.__traceback__ = trace
    return "".join(traceback.format_exception(type(error), error, trace, limit=-_FRAMES)).rstrip()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _collected(output: str, limits: Mapping[str, int]) -> wire.ProgramReport:
    """Write the output image's file and pixels to the memory files, and return the report."""
    try:
        file = os.open(output, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return wire.ProgramReport()
    except OSError as error:
        return wire.ProgramReport(problem=_encoded(f"it cannot be opened: {error.strerror}"))
    try:
        size = os.fstat(file).st_size
        if size > limits["file_bytes"]:
            at_most = f"at most {limits['file_bytes']:,} are taken"
            return wire.ProgramReport(problem=_encoded(f"it has {size:,} bytes; {at_most}"))
        content = os.read(file, size)
        return _decoded(content, limits) if content else wire.ProgramReport()
    except preload.PixelError as error:
        return wire.ProgramReport(problem=_encoded(f"it cannot be decoded: {error}"))
    except BaseException as error:  # noqa: BLE001  the decoder's, or that of code which the program replaced
        return wire.ProgramReport(problem=_encoded(f"it cannot be decoded: {type(error).__name__}"))
    finally:
        os.close(file)


def _decoded(content: bytes, limits: Mapping[str, int]) -> wire.ProgramReport:
    import numpy as np
    import PIL.Image

    warnings.simplefilter("ignore")
    PIL.Image.MAX_IMAGE_PIXELS = None  # the limit below has a better message
    with PIL.Image.open(io.BytesIO(content)) as opened:
        width, height = preload.upright_size(opened)
        if width * height > limits["image_pixels"]:
            at_most = f"at most {limits['image_pixels']:,} are taken"
            text = f"it is {width}x{height} = {width * height:,} pixels; {at_most}"
            return wire.ProgramReport(problem=_encoded(text))
        memory = _mapped(wire.PIXELS, 3 * width * height)
        target = np.frombuffer(memory, np.uint8).reshape(height, width, 3)  # [height, width, 3]
        _decode(opened, content, target, limits["background"].to_bytes(3))
        del target
        memory.close()  # a mapped file cannot be sealed
    with _mapped(wire.FILE, len(content)) as memory:
        memory[:] = content
    return wire.ProgramReport(height=height, width=width, file=len(content))


def _decode(opened: Any, content: bytes, target: Any, background: bytes) -> None:
    """Decode into `target`, as visenv decodes other images.

    For a JPEG without orientation, OpenCV takes half the time of Pillow, with one copy less.
    """
    import numpy as np

    cv2 = sys.modules.get("cv2")
    if cv2 is None or opened.format != "JPEG" or opened.mode != "RGB" or "exif" in opened.info:
        target[:] = preload.to_rgb(opened, tuple(background))
        return
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    bgr = cv2.imdecode(np.frombuffer(content, np.uint8), flags)
    if bgr is None or bgr.shape != target.shape:
        raise OSError("not a JPEG that can be decoded")
    cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB, target)


def _mapped(memory: int, size: int) -> mmap.mmap:
    """Map the file into memory; unlike `os.write`, this does not count toward `RLIMIT_FSIZE`."""
    return mmap.mmap(memory, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
