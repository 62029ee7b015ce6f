"""Real routers (FRR) on a fabric's links: weights, times, faults, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ofan
from emulation.errors import FailedRunError, NetworkError, UnsupportedError
from emulation.mininet.bgp import routers as module
from emulation.mininet.bgp.configuration import LINKS, as_number, configurations, link_addresses
from emulation.mininet.bgp.convergence import Change, await_routes, differing, fail_and_mend
from emulation.mininet.bgp.picture import draw_times
from emulation.mininet.bgp.routers import DAEMONS, refuse_without_frr, routers
from emulation.mininet.kernel import refuse_if_unable
from fattree.routes.iwrr import simplify
from fattree.shape.topology import FatTree

TREE = FatTree(4)
# FRR is a user of its own, who cannot pass through the folder of a test.
RUN = Path(f"/run/ofan-test-{os.getpid()}")
LEAF_SPINE = FatTree(pods=1, edges_per_pod=3, hosts_per_edge=2, aggs_per_pod=2, edge_agg_links=2)

COUNTS = ("other_than_computed", "other_than_exact")


@pytest.fixture
def able():
    """Skip a test on a machine without root, namespaces or FRR."""
    try:
        refuse_if_unable()
        refuse_without_frr(TREE)
    except NetworkError as error:
        pytest.skip(str(error))


def test_both_ends_of_each_link_are_neighbors_in_different_systems():
    for link in range(TREE.links):
        lower, upper = (end.switch for end in TREE.link_ends(link))
        near, far = link_addresses(link)
        assert far == near + 1 and near % 2 == 0

        addresses = [f"100.64.{address >> 8 & 0xFF}.{address & 0xFF}" for address in (near, far)]
        assert f" neighbor {addresses[1]} peer-group" in configurations(TREE, lower)["bgpd"]
        assert f" neighbor {addresses[0]} peer-group" in configurations(TREE, upper)["bgpd"]
        assert as_number(TREE, lower) != as_number(TREE, upper)


def test_addresses_of_links_stay_in_their_block_at_the_largest_fabric():
    tree = FatTree(128)
    assert link_addresses(tree.links - 1)[1] < LINKS + (1 << 22)
    numbers = {as_number(tree, switch) for switch in range(tree.switches)}
    # The cores' number, a number for each pod's aggs, and a number for each edge.
    assert len(numbers) == 1 + tree.pods + tree.edges


def test_only_an_edge_announces_a_network():
    texts = [configurations(TREE, switch)["bgpd"] for switch in range(TREE.switches)]
    networks = [re.findall(r"^  network (\S+)$", text, re.MULTILINE) for text in texts]
    assert networks[:2] == [["10.0.0.0/24"], ["10.0.1.0/24"]]
    assert not any(networks[TREE.edges :])


def test_a_configuration_needs_no_root():
    done = CliRunner().invoke(ofan.cli, ["bgp", "--configuration", "core0_1"])
    assert done.exit_code == 0 and " bgp router-id 10.4.1.2\n" in done.output
    wrong = CliRunner().invoke(ofan.cli, ["bgp", "--configuration", "core7_1"])
    assert wrong.exit_code == 1 and "there is no switch core7_1" in wrong.output


def test_weights_are_compared_by_their_ratios():
    held = [simplify(np.array([[33, 66], [50, 50], [0, 0], [0, 100]]))]
    assert differing(held, [np.array([[1, 2], [1, 1], [0, 0], [0, 1]])]) == 0
    # Another ratio, a missing route, and a route too many.
    assert differing(held, [np.array([[2, 1], [0, 0], [1, 1], [0, 1]])]) == 3


def test_a_picture_has_a_panel_for_each_way(tmp_path):
    changes = [
        Change((link,), is_up, took_ms=(75.0, 126.0), routes=4, **dict.fromkeys(COUNTS, 0))
        for link in ("edge0_0-agg0_0", "agg0_0-core0_0")
        for is_up in (False, True)
    ]
    draw_times(changes, tmp_path / "times.svg")
    text = (tmp_path / "times.svg").read_text(encoding="utf-8")
    assert "links fail" in text and "links come back" in text

    with pytest.raises(UnsupportedError, match=r"times\.txt: a picture is one of \.png"):
        draw_times(changes, tmp_path / "times.txt")


@pytest.mark.parametrize(("spare", "is_refused"), [(699, True), (700, False), (701, False)])
def test_a_fabric_too_large_for_the_memory_is_refused(spare, is_refused, monkeypatch, tmp_path):
    # 20 switches of 35 MB.
    (tmp_path / "bgpd").touch()
    monkeypatch.setattr(module, "DAEMONS", tmp_path)
    monkeypatch.setattr(module, "spare_bytes", lambda: spare * 10**6)
    if is_refused:
        with pytest.raises(NetworkError, match="FRR on 20 switches takes some 700 MB"):
            refuse_without_frr(TREE)
    else:
        refuse_without_frr(TREE)


def test_a_machine_without_frr_is_told_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "DAEMONS", tmp_path)
    with pytest.raises(NetworkError, match="apt install frr"):
        refuse_without_frr(TREE)


@pytest.mark.root
@pytest.mark.slow
def test_kernels_have_the_computed_weights_after_failures(able):
    core, edge = TREE.edge_links, 0
    with routers(TREE, RUN) as running:
        await_routes(running)
        changes = list(fail_and_mend(running, [frozenset({edge}), frozenset({core, core + 5})]))

    assert [change.other_than_computed for change in changes] == [0, 0, 0, 0]
    assert [change.is_up for change in changes] == [False, True, False, True]
    # A failed link changes the routes of more switches than its two ends.
    assert all(len(change.took_ms) > 2 for change in changes)
    assert all(0 < change.first_ms <= change.median_ms <= change.last_ms for change in changes)
    assert not RUN.exists()


@pytest.mark.root
@pytest.mark.slow
def test_parallel_links_are_sessions_each(able):
    with routers(LEAF_SPINE, RUN) as running:
        await_routes(running)
        down, up = fail_and_mend(running, [frozenset({0})])

    # The far edges weigh the spine by its links that are left, 1 : 2; W-ECMP knows the same ratio.
    assert (down.other_than_computed, up.other_than_computed) == (0, 0)


@pytest.mark.root
@pytest.mark.slow
def test_a_daemon_that_ends_is_named(able):
    with routers(TREE, RUN) as running:
        await_routes(running)
        os.kill(running.processes.pids["agg0_0 bgpd"], signal.SIGKILL)
        with pytest.raises(FailedRunError, match="agg0_0 bgpd was ended by SIGKILL"):
            list(fail_and_mend(running, [frozenset({0})]))


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_behind_after_a_kill(able, number):
    command = [sys.executable, "-I", "-m", "ofan", "bgp", "--json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr and "starts on 20 switches" in process.stderr.readline()
    process.send_signal(number)
    process.wait(timeout=30)
    process.stderr.close()

    deadline = time.monotonic() + 20
    while (daemons() or Path("/run/ofan").exists()) and time.monotonic() < deadline:
        time.sleep(0.1)

    assert not daemons() and not Path("/run/ofan").exists()


def daemons() -> list[str]:
    """Return the command lines of FRR's daemons on this machine."""
    # A process that has ended, and has not been waited for, has no command line.
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if line.startswith(str(DAEMONS))]


@pytest.mark.root
@pytest.mark.slow
def test_the_command_writes_every_change(able):
    done = CliRunner().invoke(ofan.cli, ["bgp", "--fail", "agg0_0-core0_0", "--json"])
    assert done.exit_code == 0, done.output
    changes = json.loads(done.stdout[done.stdout.index("{") :])["changes"]
    assert [change["is_up"] for change in changes] == [False, True]
    assert changes[0]["links"] == ["agg0_0-core0_0"]
