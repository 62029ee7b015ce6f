"""Probes of edges on real interfaces: sent by the controller, learned from, seen by no host."""

import shutil
from collections import Counter

import pytest

from controller.liveness import MOST_PROBES_PER_SECOND
from emulation.commands.pcap import frames
from emulation.errors import NetworkError, UnsupportedError
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.probes import refuse_unable_probes
from emulation.mininet.run import run_on
from emulation.mininet.targets import BMV2, SOFTSWITCH
from emulation.mininet.targets.bmv2 import PROGRAM
from emulation.programs.own_program import own_program
from emulation.taps import tap_named
from fattree.experiment.model import OwnProgram, Scenario
from fattree.texts.shipped import EXPERIMENTS
from tests.parity.probing import probing

IPV4, DATA, PROBE = (bytes.fromhex(number) for number in ("0800", "88b6", "88b5"))
# Milliseconds where virtual time has microseconds.
HULA = {
    "PROBE_INTERVAL_US": 100_000,
    "GAP_US": 5000,
    "LOAD_SHIFT": 17,
    "STEP_SHIFT": 12,
    "HOP_US": 500_000,
}


@pytest.fixture
def able():
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))


def scenario(**tables) -> Scenario:
    fabric = {"k": 4, "rate_gbps": 0.002, "latency_ns": 100}
    collective = {"message_bytes": 16 * 4096}
    return Scenario(policy="simple_rr", fabric=fabric, collective=collective, **tables)


def program_of(of: Scenario, file, macros):
    defines = tuple((name, str(number)) for name, number in macros.items())
    return own_program(OwnProgram(file=str(file)), of.tree, defines).program


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("target", [SOFTSWITCH, BMV2], ids=lambda target: target.name)
@pytest.mark.parametrize("fails", [False, True], ids=["whole", "a link less"])
def test_hula_carries_a_permutation(able, target, fails, tmp_path):
    if target is BMV2 and shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not on PATH")

    events = [{"link": "edge0_0-agg0_0", "down_ns": 0}] if fails else []
    of = scenario(failures={"events": events})
    program = program_of(of, EXPERIMENTS / "gallery" / "hula.p4", HULA)
    # Port 1 of an edge is a host's, port 4 the second uplink's.
    taps = (tap_named(of.tree, "h0_0_0"), tap_named(of.tree, "edge0_0:4"))
    setup = Setup(target, program, taps, captured=tmp_path, folder=tmp_path / "ofan")
    with mininet_fabric(of, setup) as fabric:
        outcome = run_on(fabric)

    assert outcome.accounts.unaccounted == outcome.accounts.dropped == outcome.accounts.lost == 0
    # A busy BMv2 does not take all packets from the kernel.
    assert outcome.accounts.unrouted == 0 or target is BMV2
    assert len(outcome.flows) == 16
    of_host, of_uplink = (
        [frame for _, frame, _ in frames(tmp_path / file)] for file in files(tmp_path)
    )
    assert {frame[12:14] for frame in of_host} == {IPV4}
    kinds = Counter(frame[12:14] for frame in of_uplink)
    # A probe of and to each of the seven others in 100 ms; half of them or all pass this uplink.
    intervals = outcome.end_ps / (100_000 * 10**6)
    assert kinds.keys() == {DATA, PROBE}
    assert kinds[PROBE] > 14 * intervals / 4


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("target", [SOFTSWITCH, BMV2], ids=lambda target: target.name)
def test_lost_probes_are_not_taken_for_packets_of_hosts(able, target, tmp_path):
    if target is BMV2 and shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not on PATH")

    # No flow crosses the links of pod 3, which lose a half of the probes.
    losses = [{"link": f"edge3_{edge}-agg3_0", "share": 0.5} for edge in range(2)]
    of = scenario(failures={"losses": losses})
    pairs = [[0, 2], [2, 4], [4, 0]]
    of = of.model_copy(
        update={
            "collective": of.collective.model_validate(
                {"matrix": "pairs", "pairs": pairs, "message_bytes": 16 * 4096}
            )
        }
    )
    program = program_of(of, probing(tmp_path), {"PROBE_INTERVAL_US": 60_000})
    setup = Setup(target, program, folder=tmp_path / "ofan")
    with mininet_fabric(of, setup) as fabric:
        outcome = run_on(fabric)

    places = outcome.accounts
    probes_lost = sum(port.lost_to_failure for port in outcome.ports)
    assert places.unaccounted == places.dropped == 0
    # A busy BMv2 does not take all packets from the kernel.
    limit = places.sent // 10 if target is BMV2 else 0
    assert probes_lost > 2 * limit
    assert places.lost + places.unrouted <= limit
    assert places.sent - places.received <= limit


@pytest.mark.parametrize(("interval_us", "fits"), [(55_999, False), (56_000, True), (56_001, True)])
def test_probes_that_switches_cannot_carry_are_refused(interval_us, fits, tmp_path):
    # 8 edges with 7 others each send 1,000 probes a second, through 5 switches.
    assert MOST_PROBES_PER_SECOND * 0.056 == 8 * 7 * 5
    fabric = {"k": 4, "rate_gbps": 1}
    of = Scenario(policy="simple_rr", fabric=fabric)
    program = program_of(of, probing(tmp_path), {"PROBE_INTERVAL_US": interval_us})
    if fits:
        refuse_unable_probes(of, program)
        return

    with pytest.raises(UnsupportedError, match="at least -D PROBE_INTERVAL_US=56000"):
        refuse_unable_probes(of, program)


def test_probes_are_refused_where_switches_have_controllers_of_their_own(tmp_path):
    of = Scenario(policy="simple_rr", fabric={"k": 4}, controller={"kind": "bgp"})
    program = program_of(of, probing(tmp_path), {"PROBE_INTERVAL_US": 20_000})
    with pytest.raises(UnsupportedError, match="PROBE_INTERVAL_US"):
        refuse_unable_probes(of, program)


def test_a_storm_is_refused_on_real_links_too(tmp_path):
    of = scenario()
    program = program_of(of, probing(tmp_path), {"PROBE_INTERVAL_US": 12_000})
    with pytest.raises(UnsupportedError, match="of its uplinks"):
        refuse_unable_probes(of, program)


def files(folder) -> list[str]:
    """Return the names of both captures, the host's first."""
    return sorted((path.name for path in folder.glob("*.pcap")), key=lambda name: "edge" in name)
