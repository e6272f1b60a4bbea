"""Tests attacks on the host: its files, its environment, its devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import visenv
from visenv.sandbox import Execution, LocalBackend, Sandbox

pytestmark = pytest.mark.attack("sandbox: a program reads and changes nothing of the host")

Attack = Callable[..., Execution]

READING = {
    "what other processes are": """
# 22 is EINVAL: without namespaces nothing seems to be a link
every(denied(os.readlink, f"/proc/{pid}/{name}") in (True, "errno 22") for pid in (CLIENT, 1)
      for name in ("exe", "cwd", "root", "fd/0"))
""",
    "what other processes have open": """
every(denied(os.stat, f"/proc/{pid}/{name}/") for pid in (CLIENT, 1) for name in ("cwd", "root"))
""",
    "data of other processes": """
every(denied(open, f"/proc/{pid}/{name}") for pid in (CLIENT, 1)
      for name in ("environ", "mem", "maps", "cmdline", "status", "fd/0", "stack"))
""",
    "password file": "denied(open, '/etc/passwd')",
    "shadow file": "denied(open, '/etc/shadow')",
    "name of the machine": "denied(open, '/etc/hostname')",
    "keys in homes": """
every(denied(open, f'/{home}/.ssh/id_rsa') for home in ('root', 'home/user'))
""",
    "root directory": "denied(os.listdir, '/')",
    "directories": """
every(denied(os.listdir, f"/{each}") for each in
    "bin boot data dev etc home lib media mnt opt proc root run srv sys tmp usr var work".split())
""",
    "/dev/shm": "denied(os.listdir, '/dev/shm')",
    "up by dots": "denied(open, '../' * 30 + 'etc/passwd')",
    "up by descriptors": """
def climb():
    for _ in range(40):
        os.chdir("..")
    return os.open("etc/passwd", os.O_RDONLY)
denied(climb)
""",
    "root by descriptor": """
def climb():
    root = os.open("/", os.O_PATH)
    return os.open("etc/passwd", os.O_RDONLY, dir_fd=root)
denied(climb)
""",
    "its own environment": "denied(open, '/proc/self/environ')",
    "its own memory": "denied(open, '/proc/self/mem', 'r+b')",
    "its own maps": "denied(open, '/proc/self/maps')",
    "its descriptors": "denied(os.listdir, '/proc/self/fd')",
    "what processes there are": "denied(os.listdir, '/proc')",
    "environments of processes": """
every(denied(open, f"/proc/{pid}/environ") for pid in (1, 2, os.getppid(), os.getpid()))
""",
    "roots of processes": """
every(denied(os.listdir, f"/proc/{pid}/root") for pid in ("1", "self", "thread-self"))
""",
    "kernel settings": """
every(denied(open, f'/proc/{e}') for e in ('cmdline', 'kallsyms', 'kcore'))
""",
    "control groups": "denied(os.listdir, '/sys/fs/cgroup')",
    "mounted file systems": "denied(open, '/proc/self/mountinfo')",
    "kernel log": "denied(open, '/dev/kmsg')",
    "terminals": "every(denied(open, f'/dev/{e}') for e in ('tty', 'console', 'ptmx', 'pts/0'))",
    "memory devices": "every(denied(open, f'/dev/{each}') for each in ('mem', 'kmem', 'port'))",
    "disks": "every(denied(open, f'/dev/{each}') for each in ('sda', 'vda', 'loop0', 'nvme0n1'))",
    "other devices": """
every(denied(open, f"/dev/{each}") for each in
    "kvm fuse net/tun userfaultfd vhost-net dri/card0 nvidia0 nvidiactl loop-control".split())
""",
    "sockets of services": """
every(denied(open, each) for each in ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus"))
""",
    "how memory is used": """
every(denied(open, f'/proc/{e}') for e in ('meminfo', 'stat', 'loadavg'))
""",
    "by the libraries": """
def readers(path):
    return [lambda: np.fromfile(path), lambda: np.memmap(path, np.uint8, "r"),
            lambda: Image.open(path), lambda: np.load(path, allow_pickle=True)]
every(denied(read) for path in ("/etc/passwd", "/proc/self/environ") for read in readers(path))
""",
    "by OpenCV": """
places = (0, "/etc/passwd", "/dev/video0", "http://127.0.0.1/a.mp4", "rtsp://127.0.0.1/a")
opened = [cv2.VideoCapture(each).isOpened() for each in places]
opened += [cv2.imread(each) is not None for each in ("/etc/passwd", "http://127.0.0.1/a.jpg")]
not any([*opened, cv2.FileStorage("/etc/passwd", 0).isOpened(), cv2.haveImageReader("/etc/passwd")])
""",
    "by the C library": """
libc.fopen.restype = ctypes.c_void_p
[libc.fopen(each, b"r") for each in (b"/etc/passwd", b"/proc/self/environ")] == [None, None]
""",
    "what any process has": """
pids = [pid for pid in range(max(1, os.getpid() - 500), os.getpid() + 500)
        if pid != os.getpid() and os.path.exists(f"/proc/{pid}")]
every(denied(open, f"/proc/{pid}/{name}", mode) for pid in pids
      for name, mode in (("mem", "rb+"), ("environ", "rb"), ("fd/3", "rb"), ("fd/4", "rb"),
                         ("fd/5", "rb+"), ("fd/6", "rb"), ("root/etc/passwd", "rb")))
""",
    "load of the machine": "denied(call, 'sysinfo', ctypes.create_string_buffer(256))",
}


@pytest.mark.parametrize("name", READING)
def test_host_cannot_be_read(name: str, attack: Attack) -> None:
    attack(f"CLIENT = {os.getpid()}\n{READING[name]}")


WRITING = {
    "outside": """
places = ("/", "/tmp/", "/etc/", "/dev/", "/dev/shm/", "/var/tmp/", "/usr/lib/", "../", "../../")
every(denied(open, f"{place}planted", "w") for place in places)
""",
    "directories": "every(denied(os.mkdir, each + 'planted') for each in ('/', '/tmp/', '../'))",
    "the standard library": "denied(open, os.__file__, 'r+')",
    "a package": "denied(open, np.__file__, 'a')",
    "a cached module": "import json\ndenied(open, json.__cached__, 'wb')",
    "emptied by reading": "denied(os.open, os.__file__, os.O_RDONLY | os.O_TRUNC)",
    "emptied by name": "denied(os.truncate, os.__file__, 0)",
    "removed": "every(denied(act, os.__file__) for act in (os.unlink, os.rmdir))",
    "replaced": "open('path_to_output_image.jpg', 'w').close()\n"
    "denied(os.replace, 'path_to_output_image.jpg', os.__file__)",
    "hard link to a library": "denied(os.link, os.__file__, 'link')",
    "given away": "denied(os.chown, os.__file__, 0, 0)",
    "attributes": "denied(os.setxattr, '.', 'user.planted', b'1')",
    "locked": """
import fcntl
file = open(os.__file__)
every(denied(act, file, fcntl.LOCK_SH) for act in (fcntl.flock, fcntl.lockf))
""",
    "a module to be loaded later": "denied(open, os.path.dirname(os.__file__) + '/x.py', 'w')",
}


@pytest.mark.parametrize("name", WRITING)
def test_host_cannot_be_changed(name: str, attack: Attack) -> None:
    attack(WRITING[name])


def test_modes_and_times_of_the_hosts_files_stay_though_it_looks_as_if_not(attack: Attack) -> None:
    before = Path(os.__file__).stat()
    attack("os.chmod(os.__file__, 0o777); os.utime(os.__file__, (0, 0)); True")
    after = Path(os.__file__).stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_file_everybody_may_read_cannot_be_read(attack: Attack, tmp_path: Path) -> None:
    truth = tmp_path / "ground_truth.json"
    truth.write_text('{"answer": 42}')
    attack(f"every([denied(open, {str(truth)!r}), denied(os.listdir, {str(tmp_path)!r})])")


def test_site_packages_have_only_what_is_needed(attack: Attack) -> None:
    installed = Path(np.__file__).parents[1]
    others = ["pip/__init__.py", "pytest/__init__.py", "gymnasium/__init__.py"]
    assert all((installed / other).exists() for other in others)
    attack(f"every(denied(open, {str(installed)!r} + '/' + each) for each in {others!r})")


def test_visenv_itself_is_not_there(attack: Attack) -> None:
    source = str(Path(visenv.__file__).with_name("registration.py"))
    attack(f"denied(open, {source!r})")
    attack("[name for name in sys.modules if 'visenv' in name or 'gymnasium' in name]", "[]")
    execution = attack("import visenv", result=None, status="error")
    assert execution.error.endswith("ModuleNotFoundError: No module named 'visenv'")


def test_import_of_what_is_not_there_fails_as_it_does_everywhere(attack: Attack) -> None:
    attack("try:\n    import torch\nexcept ImportError:\n    found = False\nfound", "False")


def test_environment_holds_nothing_of_the_clients(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("VISENV_TEST_SECRET", "hunter2hunter2")
    code = """
import ctypes, os
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
inherited = []
while environ[len(inherited)]:
    inherited.append(environ[len(inherited)].decode())
sorted(os.environ), sorted(each.partition("=")[0] for each in inherited)
"""
    assert mode in ("namespaces", "landlock")
    with Sandbox(LocalBackend(isolation=mode)) as fresh:  # type: ignore[arg-type]
        execution = fresh.run(code)
    names = ["HOME", "LANG", "OMP_NUM_THREADS", "PATH", "TMPDIR"]
    assert execution.result == repr((names, names))


def test_identity_of_the_process_reveals_nothing(attack: Attack, mode: str) -> None:
    # With Landlock alone an ordinary user keeps his user id.
    user = os.getuid() if mode == "landlock" and os.getuid() else 65534
    attack("os.getuid(), os.geteuid()", repr((user, user)))
    if os.getuid() == 0:
        attack("os.getgid(), os.getgroups()", "(65534, [])")
    attack("os.getcwd()", "'/sandbox/work'")
    if mode == "namespaces":
        attack("os.getpid(), os.getppid()", "(1, 0)")
        attack("os.uname().nodename", "'sandbox'")
    else:
        attack("denied(os.uname)")


def test_host_paths_are_cleaned_out_of_all_text(attack: Attack) -> None:
    home = str(Path.home())
    private = [str(Path(np.__file__).parents[1]), str(Path(visenv.__file__).parent), home + "/"]
    execution = attack(
        """
import json, traceback
print(np.__file__, sys.path, sys.prefix, sys.executable, sys.argv, sys.orig_argv)
print(sys.modules["guest"].__path__, sys.modules["guest"].__spec__, list(sys.path_importer_cache))
print([getattr(module, "__file__", "") for module in sys.modules.values()])
frame = sys._getframe()
while frame:
    print(frame.f_code.co_filename)
    frame = frame.f_back
import PIL.Image
PIL.Image.open("nowhere.png")
""",
        result=None,
        status="error",
    )
    assert "site-packages/numpy/__init__.py" in execution.stdout
    assert 'File "site-packages/PIL/Image.py", line' in execution.error
    assert not [path for path in private if path in execution.text]
