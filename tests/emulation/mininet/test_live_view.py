"""A held network of real processes, looked at and broken through its control socket, in the
terminal and on the page's way.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from emulation.errors import NetworkError
from emulation.held.commands import Held
from emulation.held.server import control_server
from emulation.live.held_source import HeldSource
from emulation.live.source import LiveError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from fattree.experiment.model import Scenario

pytestmark = [pytest.mark.root, pytest.mark.slow]
SCENARIO = Scenario(
    policy="ofan",
    fabric={"k": 4, "rate_gbps": 0.001, "latency_ns": 10e6},
    collective={"message_bytes": 256 * 4096},
    failures={"convergence_rtt": 0.5},
)
SECONDS = 60
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
    """Return a caller of functions elsewhere while this thread serves the held network."""
    held = Held(fabric, lambda _line: None)
    with (
        control_server(fabric.folder, fabric.loop.selector, held.handlers),
        ThreadPoolExecutor(1) as pool,
    ):

        def look(call, *arguments):
            future = pool.submit(call, *arguments)
            fabric.loop.run(lambda: held.tick() or future.done())
            return future.result()

        yield look


def seen_when(source, condition):
    """Return the first snapshot of which something holds.

    Real processes take the time that the machine gives them.
    """
    end = time.monotonic() + SECONDS
    while not condition(seen := source.poll()):
        assert time.monotonic() < end, seen
        time.sleep(0.2)
    return seen


def loads(seen):
    """Return the load up the link, and the sum of the loads up the others of its pod."""
    up = {link.name: link.load_up for link in seen.links}
    return up[LINK], sum(up[neighbour] for neighbour in OTHERS)


def is_mended(seen):
    return not seen.failed and len(seen.changes) == 2 and seen.changes[1].installed_ps is not None


def test_a_link_that_is_clicked_is_down_and_its_traffic_moves(looking, fabric):
    source = looking(HeldSource, fabric.folder)
    assert looking(source.poll).header.state == "idle"
    looking(source.start, "ofan")
    before = looking(seen_when, source, lambda seen: loads(seen)[0] > 0.1 and seen.progress > 0.05)
    looking(source.set_link, LINK, False)
    after = looking(seen_when, source, lambda seen: loads(seen)[0] == 0 and loads(seen)[1] > 0.1)
    looking(source.set_link, LINK, True)
    end = looking(seen_when, source, is_mended)
    assert (before.header.state, before.header.speed) == ("running", None)
    assert before.progress < after.progress < 1
    assert after.failed == (LINK,)
    failed, mended = end.changes
    assert (failed.links, failed.up, mended.up) == ((LINK,), False, True)
    assert failed.at_ps <= failed.detected_ps <= failed.planned_ps < failed.installed_ps
    assert failed.updates > 0 < failed.switches


def test_a_held_network_has_one_load_balancer_and_real_time(looking, fabric):
    source = looking(HeldSource, fabric.folder)
    with pytest.raises(LiveError, match="this network runs ofan"):
        source.start("jsq")
    with pytest.raises(LiveError, match="real time"):
        source.set_pace(2, False)
