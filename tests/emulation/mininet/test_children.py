import os
import select
import signal
import time
from pathlib import Path

import pytest

from emulation.errors import StartError
from emulation.mininet.children import children, last_words

pytestmark = pytest.mark.root


def ready(_name):
    return True


def never(_name):
    return False


def test_a_program_that_is_missing_is_named(tmp_path):
    with children() as started:
        started.start("edge0_1", ["no-such-switch"], tmp_path / "edge0_1.log")
        with pytest.raises(
            StartError,
            match=r"^edge0_1 ended with code 1: no-such-switch: No such file or directory$",
        ):
            started.await_all(never, 20)


def test_a_program_that_ends_is_named_with_its_last_words(tmp_path):
    with children() as started:
        started.start(
            "core0_0",
            ["sh", "-c", "echo starting; echo port 9559 is taken >&2; exit 3"],
            tmp_path / "log",
        )
        with pytest.raises(
            StartError, match=r"core0_0 ended with code 3: starting \| port 9559 is taken"
        ):
            started.await_all(never, 20)


def test_a_program_that_is_killed_says_so(tmp_path):
    with children() as started:
        started.start("agg1_0", ["sh", "-c", "kill -9 $$"], tmp_path / "log")
        with pytest.raises(StartError, match="agg1_0 was ended by SIGKILL: it said nothing"):
            started.await_all(never, 20)


def test_who_has_started_a_process_knows_it_also_when_it_is_started_again(tmp_path):
    with children() as started:
        seen = []
        for name in ("edge0_0", "edge0_1", "edge0_0"):
            started.start(name, ["sleep", "60"], tmp_path / "log")
            seen.append(started.pids[name])
        assert len(set(seen)) == 3
        assert started.pids == {"edge0_1": seen[1], "edge0_0": seen[2]}


def test_a_process_that_has_just_ended_can_be_killed(tmp_path, monkeypatch):
    # Its parent has taken its end in, and the report is on its way.
    with children() as started:
        started.start("edge0_0", ["sleep", "60"], tmp_path / "log")
        pid = started.pids["edge0_0"]
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

        monkeypatch.setattr(type(started), "listen", lambda _children: None)
        started.kill({"edge0_0"})
        assert started.exited == {}
        monkeypatch.undo()


def test_a_parent_that_has_gone_is_told(tmp_path):
    with children() as started:
        started.start("edge0_0", ["sleep", "60"], tmp_path / "log")
        said = Path(f"/proc/{started.pids['edge0_0']}/status").read_text()
        os.kill(int(said.partition("PPid:")[2].split()[0]), signal.SIGKILL)
        with pytest.raises(StartError, match=r"^edge0_1 cannot be started: the switches' parent"):
            started.start("edge0_1", ["sleep", "60"], tmp_path / "log")


def test_a_program_that_is_late_is_named(tmp_path):
    with children() as started:
        started.start("agg1_0", ["sleep", "60"], tmp_path / "log")
        with pytest.raises(StartError, match="agg1_0 is not ready after 0 s"):
            started.await_all(never, 0.2)


def test_children_end_with_their_parent(tmp_path):
    with children() as started:
        started.start("edge0_0", ["sh", "-c", "echo $$; exec sleep 60"], tmp_path / "log")
        started.await_all(lambda _name: last_words(tmp_path / "log").isdigit(), 20)
        pidfd = os.pidfd_open(int(last_words(tmp_path / "log")))
    assert select.select([pidfd], [], [], 0)[0]
    os.close(pidfd)


def test_children_that_ignore_the_end_are_killed(tmp_path):
    with children() as started:
        started.start(
            "edge0_0",
            ["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"],
            tmp_path / "log",
        )
        started.await_all(lambda _name: last_words(tmp_path / "log").isdigit(), 20)
        pidfd = os.pidfd_open(int(last_words(tmp_path / "log")))
    assert select.select([pidfd], [], [], 0)[0]
    os.close(pidfd)
