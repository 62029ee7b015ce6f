"""Links that lose a share of their packets: the kernel draws, and nothing is unaccounted for."""

import socket
import struct
from pathlib import Path

import pytest

from controller.plan import PROBE_ETHERTYPE
from emulation.errors import NetworkError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import InterfaceBooks, ip_batch, refuse_if_unable, tc_batch
from emulation.mininet.losses import bytecode, lose_packets
from emulation.mininet.run import run_on
from fattree.experiment.model import Scenario
from fattree.shape.addressing import host_named, link_named

pytestmark = pytest.mark.root
FRAMES = 2_000
DATA_ETHERTYPE = 0x0800
LINK = "agg0_0-core0_0"


@pytest.fixture
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


def scenario(*losses, packets=40, **more):
    return Scenario(
        policy="ofan",
        fabric={"k": 4, "rate_gbps": 0.0016, "latency_ns": 6e6},
        collective={"message_bytes": packets * 4096},
        failures={"losses": losses},
        **more,
    )


def is_refused(link, frame):
    try:
        link.send(frame)
    except OSError:
        return True

    return False


@pytest.mark.parametrize(
    ("share", "ethertype", "spares_probes", "expected"),
    [
        (0.25, DATA_ETHERTYPE, False, 0.25),
        (0.25, DATA_ETHERTYPE, True, 0.25),
        (0.25, PROBE_ETHERTYPE, False, 0.25),
        (0.25, PROBE_ETHERTYPE, True, 0),
        (1, DATA_ETHERTYPE, False, 1),
    ],
)
def test_the_kernel_loses_that_share_and_counts_it(
    namespace, share, ethertype, spares_probes, expected
):
    ip_batch(["link add near type veth peer name far", "link set near up", "link set far up"])
    code = bytecode(round(share * 2**32), spares_probes)
    tc_batch(
        [
            "qdisc add dev near clsact",
            f"filter add dev near egress bpf direct-action bytecode {code}",
        ]
    )
    books = InterfaceBooks()
    before = books.read(swallows=True)["near"]
    frame = bytes(12) + struct.pack(">H", ethertype) + bytes(46)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as link:
        link.bind(("near", 0))
        failed = sum(is_refused(link, frame) for _ in range(FRAMES))

    after = books.read(swallows=True)["near"]
    lost = after.refused - before.refused
    assert lost == failed, "whoever sends hears of it, and the kernel counts it once"
    assert after.sent - before.sent == FRAMES - lost
    deviation = (expected * (1 - expected) / FRAMES) ** 0.5
    assert lost / FRAMES == pytest.approx(expected, abs=5 * deviation)


@pytest.mark.slow
def test_what_links_lose_is_sent_again_and_counted_there(able, tmp_path):
    lossy = {"link": LINK, "share": 0.05}, {"host": "h3_1_1", "share": 0.05}
    on_link = by_host = 0
    with mininet_fabric(scenario(*lossy), Setup(folder=tmp_path / "ofan")) as fabric:
        tree = fabric.tree
        ends = {*tree.link_ends(link_named(tree, LINK)), tree.access(host_named(tree, "h3_1_1"))}
        for _ in range(2):
            outcome = run_on(fabric)
            accounts = outcome.accounts
            assert all(flow.done_ps for flow in outcome.flows)
            assert accounts.unaccounted == accounts.dropped == accounts.unrouted == 0
            of_ports = {
                (counts.switch, counts.port): counts.lost_to_failure for counts in outcome.ports
            }
            assert {port for port, lost in of_ports.items() if lost} <= ends
            on_link += of_ports[tree.link_ends(link_named(tree, LINK))[0]]
            # A host's own losses are no port's.
            by_host += accounts.lost - sum(of_ports.values())

        assert on_link > 0 and by_host > 0
        assert not fabric.routed
    assert not (tmp_path / "ofan").exists(), "files are left"


@pytest.mark.slow
def test_probes_take_no_lossy_link_for_a_dead_one(able, tmp_path):
    lossy = scenario(
        {"link": LINK, "share": 0.5},
        controller={"detection": "probe", "probe_interval_us": 300_000},
    )
    with mininet_fabric(lossy, Setup(folder=tmp_path / "ofan")) as fabric:
        outcome = run_on(fabric)
        assert fabric.installations == []
        ends = fabric.tree.link_ends(link_named(fabric.tree, LINK))
        assert outcome.accounts.lost == sum(
            counts.lost_to_failure
            for counts in outcome.ports
            if (counts.switch, counts.port) in ends
        )
    assert outcome.accounts.lost > 0 and outcome.accounts.unaccounted == 0


def test_a_kernel_that_cannot_is_named(network, tree, tmp_path: Path, monkeypatch):
    tool = tmp_path / "tc"
    tool.write_text("#!/bin/sh\necho 'Error: TC classifier not found.' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(
        NetworkError,
        match=r"^failures.losses: this kernel .*classifier not found.*--network virtual or sim$",
    ):
        lose_packets(scenario({"link": LINK, "share": 0.5}), [])
