"""A process without files reads, makes, moves and changes none, whoever it is and whatever helps.

The files that it tries to change are put into a folder of all users, and looked at afterwards.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostagent.own_packet import own_forms
from tests.hostagent.own_packets import OURS
from tests.hostagent.test_own_packet import complaint

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="as root")
ROOT = Path(__file__).parents[2]
DEEDS = """
import os, socket

def done(folder):
    secret = folder + "/secret"
    deeds = {
        "read": lambda: open(secret).read(),
        "read by number": lambda: os.read(os.open(secret, os.O_RDONLY), 9),
        "make": lambda: os.open(folder + "/made", os.O_CREAT | os.O_WRONLY),
        "make a folder": lambda: os.mkdir(folder + "/made"),
        "make a link": lambda: os.symlink("/", folder + "/link"),
        "make a hard link": lambda: os.link(secret, folder + "/hard"),
        "make a pipe": lambda: os.mkfifo(folder + "/pipe"),
        "move": lambda: os.rename(secret, folder + "/moved"),
        "cut": lambda: os.truncate(secret, 1),
        "delete": lambda: os.unlink(secret),
        "change rights": lambda: os.chmod(secret, 0o600),
        "change times": lambda: os.utime(secret, (1, 1)),
        "look": lambda: os.stat(secret),
        "list": lambda: os.listdir("/"),
        "go up": lambda: [os.chdir("..") for _ in range(9)] and open("etc/passwd").read(),
        "another root": lambda: os.chroot(folder),
        "run": lambda: os.execv("/bin/true", ["true"]),
        "talk": lambda: socket.socket(),
        "memory": lambda: os.memfd_create("x"),
        "signal": lambda: os.kill(os.getppid(), 0),
    }
    found = []
    for name, deed in deeds.items():
        try:
            deed()
        except OSError:
            continue
        found.append(name)
    return found
"""
ALONE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from hostagent.agents import confined
if sys.argv[3] == "nobody":
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for name in sys.argv[4:]:
    setattr(confined, name, lambda: None)
confined.give_up_files()
print(",".join(done(sys.argv[2])))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    planted = Path(tempfile.mkdtemp(prefix="ofan-planted-"))
    planted.chmod(0o777)
    secret = planted / "secret"
    secret.write_text("a secret")
    # Of whoever runs the code, where that is not root.
    secret.chmod(0o666)
    if IS_ROOT:
        os.chown(secret, 65534, 65534)

    yield planted
    shutil.rmtree(planted)


def looks_untouched(folder: Path) -> bool:
    (secret,) = folder.iterdir()
    state = secret.stat()
    return (secret.read_text(), state.st_mode & 0o777, state.st_nlink) == ("a secret", 0o666, 1)


def test_packet_functions_have_no_files(folder: Path) -> None:
    words_of_error = complaint(
        f"{DEEDS}\nraise ValueError('done: ' + ','.join(done({str(folder)!r})))"
    )
    # A signal of number 0 asks for rights alone: nobody has them over root's processes.
    assert words_of_error.endswith("ValueError: done:"), words_of_error
    assert looks_untouched(folder)


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("missing", [(), ("_enter_nothing",), ("_landlock",)])
@as_root
def test_each_way_alone_leaves_little(folder: Path, user: str, missing: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", DEEDS + ALONE, str(ROOT), str(folder), user, *missing]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    successes = set(done.stdout.strip().split(",")) - {""}

    # Landlock knows no rights and times; an empty root knows no signals. Root may have another
    # root, in which it opens nothing either: `packet_process` gives up root then.
    allowed = {
        (): set[str](),
        ("_enter_nothing",): {"change rights", "change times", "look"},
        ("_landlock",): {"signal"},
    }[missing]
    assert successes <= allowed | ({"another root"} if user == "root" else set()), successes
    if "change rights" not in allowed:
        assert looks_untouched(folder)


def test_modules_of_the_standard_library_are_there() -> None:
    own_forms(f"import ipaddress, random\nfrom zlib import crc32\n{OURS}", "mine.py", 300)
