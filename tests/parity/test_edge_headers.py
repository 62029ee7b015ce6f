"""Headers between edges: counted on links between switches, and equal in all engines."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulation.errors import UnsupportedError
from emulation.virtual import simulated
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.switch_state import state_of
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import RESUME_PACKETS
from fattree.routes.buffers import rooms
from fattree.texts.shipped import EXPERIMENTS
from tests.parity.drawing import one_in
from tests.parity.edge_headers import HEADER_BYTES, case, counting
from tests.parity.own_programs import Case, judge
from tests.python_network.fabric import PythonFabric

PAIR = {"matrix": "pairs", "pairs": [[0, 9]], "message_bytes": 20 * 4096}


def scenario(folder: Path, **tables: Any) -> Scenario:
    settings = {"fabric": {"k": 4}, "collective": {"message_bytes": 30 * 4096 + 7}, "seed": 3}
    return Scenario.model_validate(
        {**settings, "policy": "simple_rr", "program": str(counting(folder)), **tables}
    )


def virtual(of: Scenario) -> PythonFabric:
    return PythonFabric(of.model_copy(update={"program": None}), simulated.program_of(of))


def native(of: Scenario) -> VirtualFabric:
    program = simulated.program_of(of)
    plain = of.model_copy(update={"program": None})
    return VirtualFabric(plain, program)


def test_links_between_switches_alone_carry_the_header(tmp_path: Path) -> None:
    result = simulated.run(scenario(tmp_path, collective=PAIR))
    tree = result.scenario.tree
    number = np.arange(tree.first_port(tree.switches))
    is_edge = number < tree.first_port(tree.edges)
    is_access = is_edge & (number % len(tree.ports(0)) < tree.hosts_per_edge)
    packets, size = result.ports.packets, result.ports.bytes
    # 20 packets of data and 20 ACKs, over two links of hosts' and four between switches each way.
    one_way = 20 * (result.scenario.data_bytes + result.scenario.ack_bytes)
    assert packets[is_access].sum() == 40 and size[is_access].sum() == one_way
    assert packets[~is_access].sum() == 4 * 40
    assert size[~is_access].sum() == 4 * (one_way + 40 * HEADER_BYTES)


def test_the_header_takes_its_time_on_links(tmp_path: Path) -> None:
    of = scenario(tmp_path, collective={**PAIR, "message_bytes": 4096})
    result = simulated.run(of)
    plain = simulated.run(
        of.model_copy(update={"program": None, "policy": "rsq"}).model_copy(
            update={"program": "built-in"}
        )
    )
    longer_ps = of.tx_ps(of.data_bytes + HEADER_BYTES) - of.tx_ps(of.data_bytes)
    longer_ps += of.tx_ps(of.ack_bytes + HEADER_BYTES) - of.tx_ps(of.ack_bytes)
    assert result.done_ps[0] - plain.done_ps[0] == 4 * longer_ps


def test_hooks_are_applied_at_each_link_and_at_the_last_edge(tmp_path: Path) -> None:
    network = virtual(scenario(tmp_path, collective=PAIR))
    network.run()
    arrays = {
        (array.switch, array.array.rpartition(".")[2]): dict(array.cells)
        for array in state_of(network)
    }
    # Host 0 is at edge 0 of pod 0, host 9 at edge 4, the first of pod 2: four links each way.
    assert sum(cell[0] for cell in arrays["edge2_0", "links"].values()) == 4 * 20
    assert sum(cell[0] for cell in arrays["edge0_0", "links"].values()) == 4 * 20
    assert arrays["edge2_0", "of_edge"] == {0: (20,)}
    assert arrays["edge0_0", "of_edge"] == {4: (20,)}
    assert not any(
        switch.startswith(("agg", "core")) and name == "links" for switch, name in arrays
    )


def test_hosts_of_an_edge_need_no_header(tmp_path: Path) -> None:
    result = simulated.run(scenario(tmp_path, collective={**PAIR, "pairs": [[0, 1]]}))
    assert int(result.ports.bytes.sum()) == 20 * (
        result.scenario.data_bytes + result.scenario.ack_bytes
    )


@pytest.mark.parametrize("ecn_percent", [None, 20])
def test_machine_code_has_the_digest_of_the_python_network(
    tmp_path: Path, ecn_percent: int | None
) -> None:
    of = scenario(
        tmp_path,
        fabric={"k": 4, "queue_bytes": 20 * 4200},
        load_balancer={"ecn_percent": ecn_percent},
    )
    plain, compiled = virtual(of).run(), native(of).run()
    assert plain.digest == compiled.digest
    assert plain.accounts == compiled.accounts


@pytest.mark.parametrize("number", one_in(5, range(12)))
def test_drawn_experiments_are_equal(number: int, tmp_path: Path) -> None:
    assert judge(Case(case(number, tmp_path), is_copy=False, about=""))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12, 72))
def test_more_drawn_experiments_are_equal(number: int, tmp_path: Path) -> None:
    assert judge(Case(case(number, tmp_path), is_copy=False, about=""))


def test_buffers_without_room_for_the_header_are_refused(tmp_path: Path) -> None:
    small = {"k": 4, "queue_bytes": Scenario().data_bytes}
    with pytest.raises(UnsupportedError, match="queue_bytes = 4158: a packet has 4162 bytes"):
        virtual(scenario(tmp_path, fabric=small))


QUEUE_BYTES = 400_000
PAUSED = {"k": 4, "flow_control": "pfc", "queue_bytes": QUEUE_BYTES}


def test_rooms_count_the_header_between_switches_alone(tmp_path: Path) -> None:
    of = scenario(tmp_path, fabric=PAUSED)
    plain, longer = (rooms(of, 0, more_bytes=more) for more in (0, HEADER_BYTES))
    host, uplink = 1, len(of.tree.ports(0))
    assert longer[host] == plain[host]
    # Two packets, and the packet for which the pause waits: its time is that of as many bytes.
    assert plain[uplink].pause_above - longer[uplink].pause_above == 3 * HEADER_BYTES
    below = plain[uplink].resume_at - longer[uplink].resume_at
    assert below == 3 * HEADER_BYTES + RESUME_PACKETS * HEADER_BYTES


@pytest.mark.parametrize(("short_bytes", "fits"), [(1, False), (0, True), (-1, True)])
def test_a_buffer_needs_room_for_headroom_and_packets_with_headers(
    tmp_path: Path, short_bytes: int, fits: bool
) -> None:
    of = scenario(tmp_path, fabric=PAUSED)
    needed = QUEUE_BYTES - min(
        buffer.resume_at
        for switch in (0, of.tree.first_agg)
        for buffer in rooms(of, switch, more_bytes=HEADER_BYTES).values()
    )
    tight = scenario(tmp_path, fabric={**PAUSED, "queue_bytes": needed - short_bytes})
    if fits:
        simulated.run(tight)
    else:
        with pytest.raises(ExperimentError, match="has no room for a headroom"):
            simulated.run(tight)


@pytest.mark.parametrize("shared", [False, True])
def test_paused_links_with_headers_drop_nothing_and_engines_agree(
    tmp_path: Path, shared: bool
) -> None:
    fabric = {**PAUSED, "queue_bytes": 150_000} | ({"buffer": "shared"} if shared else {})
    pairs = [(host, 0) for host in range(1, 16) for _ in range(2)]
    collective = {"matrix": "pairs", "message_bytes": 40 * 4096, "pairs": pairs}
    transport = {"recovery": "go_back_n", "reorder_packets": 32}
    of = scenario(tmp_path, fabric=fabric, collective=collective, transport=transport)
    plain, compiled = virtual(of).run(), native(of).run()
    assert plain.digest == compiled.digest
    assert plain.accounts == compiled.accounts
    assert plain.accounts.dropped == 0
    assert sum(port.pauses for port in plain.ports) > 10
    # Buffers that kept bytes of a header would pause links for ever.
    assert simulated.run(of).end_ps == plain.end_ps


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_buffer_holds_packets_as_they_came(tmp_path: Path, off: int) -> None:
    """Packets come to the last edge with the header, and leave it without."""
    above = 5 * (Scenario().data_bytes + HEADER_BYTES) + off
    fabric = {**PAUSED, "headroom_bytes": QUEUE_BYTES - above}
    # Two streams by one aggregation switch each, which meet at the link to a host.
    pairs = [(8, 0), (12, 0)]
    collective = {"matrix": "pairs", "message_bytes": 40 * 4096, "pairs": pairs}
    transport = {"recovery": "sack", "sack_threshold": 1000, "receiver_share": False}
    of = scenario(tmp_path, fabric=fabric, collective=collective, transport=transport)
    plain, compiled = virtual(of).run(), native(of).run()
    assert plain.digest == compiled.digest
    assert sum(port.pauses for port in plain.ports) > 0


def test_probes_that_would_be_paused_are_refused(tmp_path: Path) -> None:
    of = scenario(tmp_path, fabric=PAUSED)
    probes = of.model_copy(update={"program": str(EXPERIMENTS / "gallery" / "hula.p4")})
    with pytest.raises(UnsupportedError, match="PROBE_INTERVAL_US: probes would be paused"):
        simulated.run(probes)
