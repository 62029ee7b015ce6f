"""A held network of real processes, looked at and broken through its control socket, in the terminal and on the page's way."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulation.control_server import control_server
from emulation.errors import NetworkError
from emulation.hold import Held
from emulation.kernel import refuse_if_unable
from emulation.live.held_source import HeldSource
from emulation.live.source import LiveError
from emulation.mininet_fabric import Setup, mininet_fabric
from fabric.experiment import Scenario

pytestmark = [pytest.mark.root, pytest.mark.slow]
SCENARIO = Scenario(
    policy="ofan",
    fabric={"k": 4, "rate_gbps": 0.001, "latency_ns": 10e6},
    collective={"message_bytes": 128 * 4096},
    failures={"convergence_rtt": 0.5},
)
LINK, OTHERS = "agg2_0-core0_0", ("agg2_0-core0_1", "agg2_1-core1_0", "agg2_1-core1_1")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))
    with mininet_fabric(SCENARIO, Setup(folder=tmp_path_factory.mktemp("run") / "ofan")) as fabric:
        yield fabric


@pytest.fixture
def looking(fabric):
    """Return a function that calls something elsewhere while this thread serves the held network."""
    held = Held(fabric, lambda _line: None)
    with control_server(fabric.folder, fabric.loop.selector, held.handlers), ThreadPoolExecutor(1) as pool:

        def look(call, *arguments):
            future = pool.submit(call, *arguments)
            fabric.loop.run(lambda: held.tick() or future.done())
            return future.result()

        yield look


def snapshots(source, seconds):
    """Return the last of the snapshots of some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = source.poll()
        time.sleep(0.2)
    return seen


def share_of_link(seen):
    """Return which share of what leaves the pod goes up the link; what real processes carry depends on the machine."""
    up = {link.name: link.load_up for link in seen.links if link.name in (LINK, *OTHERS)}
    assert sum(up.values()) > 0.05
    return up[LINK] / sum(up.values())


def test_a_link_that_is_clicked_is_down_and_its_traffic_moves(looking, fabric):
    source = looking(HeldSource, fabric.folder)
    assert looking(source.poll).header.state == "idle"
    looking(source.start, "ofan")
    before = looking(snapshots, source, 1.6)
    looking(source.set_link, LINK, False)
    after = looking(snapshots, source, 2)
    looking(source.set_link, LINK, True)
    end = looking(snapshots, source, 3)
    assert (before.header.state, before.header.speed) == ("running", None)
    assert 0 < before.progress < after.progress < 1
    assert after.failed == (LINK,)
    assert share_of_link(before) > 0.15 > 0.05 > share_of_link(after)
    failed, mended = end.changes
    assert (failed.links, failed.up, mended.up, end.failed) == ((LINK,), False, True, ())
    assert failed.at_ps <= failed.detected_ps <= failed.planned_ps < failed.installed_ps
    assert failed.updates > 0 < failed.switches


def test_a_held_network_has_one_load_balancer_and_real_time(looking, fabric):
    source = looking(HeldSource, fabric.folder)
    with pytest.raises(LiveError, match="this network runs ofan"):
        source.start("jsq")
    with pytest.raises(LiveError, match="real time"):
        source.set_pace(2, False)
