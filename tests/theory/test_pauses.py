"""Pauses in numbers worked out by hand: the room they need, how they travel, waiting packets."""

from typing import Any

import pytest

from emulation.errors import EmulationError, UnsupportedError
from emulation.mininet.building import refuse_what_target_lacks
from emulation.mininet.limits import PAUSED_LATE_PS
from emulation.mininet.limits import refuse_unsupported as refuse_on_mininet
from emulation.mininet.targets import BMV2
from emulation.virtual.events import HEED
from fattree.errors import ExperimentError
from fattree.experiment.model import Fabric, Scenario
from fattree.experiment.pauses import headroom_bytes
from fattree.routes.cycles import cycle
from fattree.shape.topology import Level
from sim.arrays.network import build
from sim.errors import UnfinishedError
from sim.kernels.events.upcoming import CLOSED
from sim.kernels.ports import FAR
from sim.kernels.switches import PORT_BITS
from sim.runs.deadlock import deadlock, waits
from sim.runs.engine import advanced, run, simulate
from tests.python_network.fabric import PythonFabric
from tests.python_network.lossless import Frame, LosslessNetwork, Pause

PACKET = 4096 + 62
# At 800 Gbit/s and 500 ns: a packet, with its gap, a control frame, a link.
T, SLOT, FRAME, LATENCY = 41_580, 41_780, 640, 500_000
# One host and one switch of each kind a pod, three pods.
CHAIN = {"pods": 3, "edges_per_pod": 1, "hosts_per_edge": 1, "aggs_per_pod": 1, "cores_per_agg": 1}


def scenario(pairs: tuple[tuple[int, int], ...], packets: int = 100, **fabric: Any) -> Scenario:
    """Return hosts that begin together, at a fixed rate, on a chain of switches that pause."""
    return Scenario.model_validate(
        {
            "fabric": CHAIN | {"flow_control": "pfc"} | fabric,
            "collective": {"matrix": "pairs", "message_bytes": packets * 4096, "pairs": pairs},
            "transport": {
                "recovery": "go_back_n",
                "timer_floor_rtt": 10_000,
                "random_phases": False,
                "receiver_share": False,
            },
        }
    )


def network_of(chosen: Scenario) -> tuple[PythonFabric, LosslessNetwork]:
    fabric = PythonFabric(chosen)
    assert isinstance(fabric.network, LosslessNetwork)
    return fabric, fabric.network


def test_a_buffer_needs_room_for_what_is_under_way_and_not_a_byte_less() -> None:
    # Two hosts at line rate meet at the port of a third. When the nth packets of both come, n -
    # 1 have left, the first host's first: of the second host's (n - 1) // 2.
    whole = 10
    crosses = 2 * whole
    assert crosses - (crosses - 1) // 2 == whole + 1
    # That packet has begun 41,580 + 500,000 ps before; packets that begin until the pause has been
    # sent (640 ps) and is there (500,000 ps) come in as well.
    last = crosses + (T + LATENCY + FRAME + LATENCY) // SLOT
    assert last == crosses + 24
    needed = (last - (last - 1) // 2) * PACKET
    assert needed == (whole + 13) * PACKET
    threshold = whole * PACKET
    leaf: dict[str, Any] = {"pods": None, "cores_per_agg": None, "hosts_per_edge": 3}

    def dropped(capacity: int) -> tuple[int, int]:
        chosen = scenario(
            ((0, 2), (1, 2)), queue_bytes=capacity, headroom_bytes=capacity - threshold, **leaf
        )
        return PythonFabric(chosen).run().accounts.dropped, run(chosen).record.dropped

    assert dropped(needed) == (0, 0)
    virtual, simulated = dropped(needed - 1)
    assert virtual == simulated > 0


def test_headroom_is_what_links_carry_there_and_back() -> None:
    # 1,000 ns of latency are 100,000 bytes, a packet with its gap 4,178, two frames with theirs
    # 168, and two packets whole 8,316.
    assert headroom_bytes(scenario(((0, 2),)), Level.HOST) == 100_000 + 4_178 + 168 + 8_316


def test_a_pause_travels_over_three_tiers_to_the_sender() -> None:
    # Two hosts at line rate meet at the core: each of its buffers grows by half a packet a slot.
    whole = 10
    queue_bytes = 150_000
    chosen = scenario(
        ((0, 2), (1, 2)),
        queue_bytes=queue_bytes,
        headroom_bytes=queue_bytes - whole * PACKET,
        packets=400,
    )
    fabric, network = network_of(chosen)
    heard: list[tuple[int, int]] = []
    heed = network._heed

    def listen(time_ps: int, node: int, number: int, frame: Frame) -> None:
        if frame.is_pause:
            heard.append((node, time_ps))
        heed(time_ps, node, number, frame)

    network._handlers[HEED] = listen
    outcome = fabric.run()

    hop = T + LATENCY
    for host, arrivals in ((0, 2 * whole + 1), (1, 2 * whole)):
        # So many have come to the core when more than ten of them are still there: of the two that
        # come at a time the first host's goes first.
        at_agg = 3 * hop + (arrivals - 1) * SLOT + FRAME + LATENCY
        # Packets that come to the agg and cannot begin any more stay, the eleventh of them pauses.
        stays = (at_agg - 2 * hop) // SLOT + 2
        at_edge = 2 * hop + (stays + whole - 1) * SLOT + FRAME + LATENCY
        stays = (at_edge - hop) // SLOT + 2
        at_host = hop + (stays + whole - 1) * SLOT + FRAME + LATENCY
        tree = chosen.tree
        nodes = (tree.first_agg + host, host, tree.switches + host)
        first = {node: next(time_ps for of, time_ps in heard if of == node) for node in nodes}
        assert list(first.values()) == [at_agg, at_edge, at_host]
        # The ports that lead to them: the agg's and the edge's upper ones.
        for time_ps, node in zip(first.values(), nodes, strict=True):
            assert [is_paused(chosen, node, until_ps) for until_ps in (time_ps, time_ps + 1)] == [
                False,
                True,
            ]

    assert outcome.accounts.dropped == 0 and outcome.accounts.unaccounted == 0
    # All that was to be sent was sent once: nothing was lost, nothing overtaken.
    assert sum(flow.transmissions for flow in outcome.flows) == 800


def is_paused(chosen: Scenario, node: int, until_ps: int) -> bool:
    """Return whether the simulator has paused a host, or a switch's upper port, before a time."""
    world = advanced(build(chosen), until_ps)
    tree = chosen.tree
    if node >= tree.switches:
        return bool(world.hosts.until_ps[node - tree.switches] > until_ps)

    return bool(world.gates.state[tree.first_port(node) + tree.downlinks(node)])


@pytest.mark.parametrize("policy", ["flow", "ofan", "rsq", "host_dr"])
@pytest.mark.parametrize("latency_ns", [1, 500, 3_000])
def test_with_the_room_of_the_closed_form_nothing_is_ever_dropped(
    policy: str, latency_ns: float
) -> None:
    fabric = {"k": 4, "flow_control": "pfc", "latency_ns": latency_ns}
    need = headroom_bytes(Scenario(fabric=Fabric(k=4, latency_ns=latency_ns)), Level.HOST)
    chosen = Scenario.model_validate(
        {
            "policy": policy,
            "fabric": fabric | {"queue_bytes": need + 2 * PACKET},
            "collective": {
                "matrix": "pairs",
                "message_bytes": 24 * 4096,
                "pairs": [(host, host % 2) for host in range(2, 16)],
            },
            "transport": {"recovery": "sack", "sack_threshold": 1000, "timer_floor_rtt": 1000},
        }
    )
    outcome = PythonFabric(chosen).run()
    assert sum(port.pauses for port in outcome.ports) > 0
    assert outcome.accounts.dropped == outcome.accounts.unaccounted == 0
    # Nothing was lost and nothing has timed out, so nothing was sent twice.
    assert sum(flow.transmissions for flow in outcome.flows) == 14 * 24
    result = run(chosen)
    assert result.ports.pauses.sum() > 0 and result.ports.dropped.sum() == 0
    assert result.transmissions.sum() == 14 * 24


def incast_at_40_gbps(senders: int, **more: Any) -> Scenario:
    """Return an incast at the rate of DCQCN's publication, over links that pause."""
    return Scenario.model_validate(
        {
            "policy": "flow",
            "fabric": {
                "k": 4,
                "rate_gbps": 40,
                "flow_control": "pfc",
                "queue_bytes": 200_000,
                "headroom_bytes": 30_000,
            },
            "packets": {"payload_bytes": 1000},
            "collective": {
                "matrix": "pairs",
                "message_bytes": 16 << 20,
                "pairs": [(15 - host, 0) for host in range(senders)],
            },
            "transport": {
                "recovery": "go_back_n",
                "timer_floor_rtt": 1000,
                "receiver_share": False,
            }
            | more,
            "load_balancer": {"ecn_percent": 2.5, "ecn_full_percent": 100, "ecn_chance": 0.01},
        }
    )


@pytest.mark.parametrize("senders", [2, 8])
def test_dcqcn_leaves_few_pauses(senders: int) -> None:
    paused = run(incast_at_40_gbps(senders))
    # The receiver's link never waits for anything, whichever port is paused.
    assert 0 <= paused.increase < 1e-5
    slowed = run(incast_at_40_gbps(senders, congestion="dcqcn"))
    assert paused.ports.pauses.sum() > 10_000
    assert slowed.ports.pauses.sum() < paused.ports.pauses.sum() / 10
    assert paused.ports.dropped.sum() == slowed.ports.dropped.sum() == 0


def test_a_cycle_is_found_wherever_it_is() -> None:
    assert cycle({}) == []
    assert cycle({1: [2], 2: [3], 3: []}) == []
    assert cycle({1: [2, 3], 2: [4], 3: [4], 4: [5]}) == []
    assert cycle({0: [1], 1: [2, 5], 5: [6], 6: [1], 2: []}) == [1, 5, 6]
    assert cycle({7: [7]}) == [7]


def test_a_deadlock_is_told_with_its_ports() -> None:
    # Up and down again, and up once more: no route of a folded Clos does that, so it is made up.
    _, network = network_of(scenario(((0, 2),)))
    edge, agg, up, down = 0, network.tree.first_agg, 2, 1
    network._pauses = {switch_port: Pause(0, 10**9) for switch_port in ((edge, up), (agg, down))}
    network._buffers[agg][down].waiting[down] += 1
    assert cycle(network.waits()) == []
    network._buffers[edge][up].waiting[up] += 1
    assert "deadlock, a cycle of paused ports: edge0_0 port 2 waits for agg0_0 port 1" in (
        network._unfinished(0)
    )


def test_the_simulator_tells_a_deadlock_with_its_ports() -> None:
    chosen = scenario(((0, 2),))
    world = build(chosen).world
    edge, agg, up, down = 0, chosen.tree.first_agg, 2, 1

    def hold(switch: int, port: int, came_by: int) -> None:
        number = chosen.tree.first_port(switch) + port - 1
        link = world.links[number]
        world.pool.packets[link.tail].time_ps = FAR | (77 << PORT_BITS) | (came_by - 1)
        world.links.tail[number] += 1
        world.gates.state[number] = CLOSED

    hold(agg, down, came_by=down)
    assert deadlock(chosen.tree, world) == ""
    hold(edge, up, came_by=1)
    assert waits(chosen.tree, world) == {(edge, up): [(agg, down)], (agg, down): []}
    assert deadlock(chosen.tree, world) == ""
    hold(edge, up, came_by=up)
    assert deadlock(chosen.tree, world) == (
        "; deadlock, a cycle of paused ports: edge0_0 port 2 waits for agg0_0 port 1"
        " waits for edge0_0 port 2"
    )


def test_pauses_that_nothing_ends_stop_the_run() -> None:
    # An edge that never hears that its port may go on.
    chosen = scenario(((0, 2),))
    network = build(chosen)
    gates = network.world.gates
    gates.state[chosen.tree.downlinks(0)] = CLOSED
    gates.until_ps[chosen.tree.downlinks(0)] = FAR
    with pytest.raises(UnfinishedError, match=r"1 flow\(s\) not finished"):
        simulate(network, None, None, 0)


SLOW = {"link": "edge0_0-agg0_0", "rate": 0.001}
STORM = {"host": "h0_0_0", "until_ns": 9}
DEAD = {"host": "h0_0_0", "down_ns": 0, "up_ns": 9}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"transport": {"trimming": True}}, "transport.trimming"),
        ({"failures": {"degraded": [SLOW]}}, "holds a link for"),
        ({"failures": {"storms": [STORM, STORM]}}, "h0_0_0 is named twice"),
        ({"failures": {"storms": [STORM], "events": [DEAD]}}, "both name h0_0_0"),
        ({"fabric": {"pause_watchdog": "drop"}}, r"needs fabric\.pause_watchdog_us"),
        ({"fabric": {"queue_bytes": 0}}, "without a limit"),
        ({"fabric": {"queue_bytes": 100_000}}, "no room for a headroom of 112662 bytes"),
        ({"controller": {"detection": "probe"}}, "probes would be paused"),
    ],
)
def test_what_does_not_go_with_pauses_is_refused(settings: dict[str, Any], reason: str) -> None:
    fabric = {"k": 4, "flow_control": "pfc"} | settings.pop("fabric", {})
    chosen = Scenario.model_validate({"fabric": fabric} | settings)
    with pytest.raises((ExperimentError, EmulationError), match=reason):
        PythonFabric(chosen)
    with pytest.raises(ExperimentError, match=reason):
        build(chosen)


@pytest.mark.parametrize(
    "settings",
    [
        {"fabric": {"headroom_bytes": 1}},
        {"fabric": {"pause_watchdog_us": 9}},
        {"fabric": {"pause_watchdog": "drop"}},
        {"failures": {"storms": [STORM]}},
    ],
)
def test_settings_of_pauses_without_pauses_are_refused(settings: dict[str, Any]) -> None:
    chosen = Scenario.model_validate(settings)
    for build_it in (PythonFabric, build):
        with pytest.raises(ExperimentError, match=r"needs fabric\.flow_control"):
            build_it(chosen)


def test_networks_that_cannot_pause_say_so() -> None:
    chosen = scenario(((0, 2),))
    with pytest.raises(UnsupportedError, match="BMv2 neither sends nor heeds pauses"):
        refuse_what_target_lacks(chosen, BMV2)


def test_on_mininet_headroom_counts_how_late_processes_are() -> None:
    # At 1 Mbit/s and 10 ms: there and back and half a second are 65,000 bytes.
    slow: dict[str, Any] = {"rate_gbps": 0.001, "latency_ns": 10e6}
    need = 65_000 + 4_178 + 168 + 8_316
    assert headroom_bytes(scenario(((0, 2),), **slow), Level.HOST, PAUSED_LATE_PS) == need
    refuse_on_mininet(scenario(((0, 2),), queue_bytes=need + 8_316, **slow))
    with pytest.raises(ExperimentError, match=f"no room for a headroom of {need} bytes"):
        refuse_on_mininet(scenario(((0, 2),), queue_bytes=need + 8_315, **slow))
