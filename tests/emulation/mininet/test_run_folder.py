import os
import stat
import subprocess
import sys

import pytest

from emulation.errors import BusyError
from emulation.mininet.run_folder import run_folder


def test_the_folder_is_ours_alone_and_vanishes(tmp_path):
    with run_folder(tmp_path / "ofan") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "logs").mkdir()
        (folder / "logs" / "edge0_0.log").write_text("words")
    assert list(tmp_path.iterdir()) == []


def test_a_second_emulation_is_refused_with_the_process_of_the_first(tmp_path):
    with run_folder(tmp_path / "ofan") as folder:
        with (
            pytest.raises(
                BusyError, match=f"another emulation runs here \\(process {os.getpid()}\\)"
            ),
            run_folder(folder),
        ):
            pass
        assert folder.exists()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    script = """
import os, sys
from pathlib import Path
from emulation.mininet.run_folder import run_folder
with run_folder(Path(sys.argv[1])) as folder:
    (folder / "edge0_0.grpc").write_text("")
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "ofan")], check=False)
    assert (tmp_path / "ofan" / "edge0_0.grpc").exists()
    with run_folder(tmp_path / "ofan") as folder:
        assert [path.name for path in folder.iterdir()] == ["pid"]


def test_a_foreign_target_of_a_link_survives(tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "keep").write_text("")
    with run_folder(tmp_path / "ofan") as folder:
        (folder / "link").symlink_to(foreign)
    assert (foreign / "keep").exists()
