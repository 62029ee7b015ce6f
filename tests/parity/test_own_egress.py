"""Programs of a user's own with an egress: its drops, and its memory for ingress."""

from pathlib import Path

import pytest

from emulation.outcomes.outcome import Outcome
from emulation.programs.switch_program import load_program, size_of
from emulation.virtual.fabric import VirtualFabric
from tests.parity.engines import assert_same
from tests.parity.test_native_equals_virtual import scenario
from tests.python_network.fabric import PythonFabric

DROPPING = """
#include "fabric.p4"
#include "parser.p4"
#include "checksum.p4"
#include "routes.p4"

control OwnIngress(inout headers_t headers, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    Routes() routes;
    Schedule() schedule;
    bool is_northbound;
    apply {
        routes.apply(headers, meta, standard_metadata, is_northbound);
        if (is_northbound) {
            schedule.apply(meta.schedule, (bit<16>) headers.udp.source_port[0:0],
                           standard_metadata);
        }
        standard_metadata.priority = headers.udp.source_port[2:0];
    }
}

control OwnEgress(inout headers_t headers, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.priority == LOST && standard_metadata.packet_length > 256) {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(SwitchParser(), SwitchVerifyChecksum(), OwnIngress(), OwnEgress(), SwitchComputeChecksum(),
         SwitchDeparser()) main;
"""

# Egress keeps numbers of ingress, more than one word has room for, in a register; by their bits the
# next packet's port is chosen.
REMEMBERING = """
#include "fabric.p4"
#include "parser.p4"
#include "checksum.p4"
#include "routes.p4"

register<bit<32>>(1) seen;

control OwnIngress(inout headers_t headers, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Routes() routes;
    Schedule() schedule;
    bool is_northbound;
    bit<32> bits;
    apply {
        routes.apply(headers, meta, standard_metadata, is_northbound);
        meta.charged_bytes = headers.ipv4.destination;
        meta.queue_bytes = (bit<32>) headers.udp.source_port;
        if (is_northbound) {
            seen.read(bits, 0);
            schedule.apply(meta.schedule, (bit<16>) (bits[0:0] ^ bits[5:5]), standard_metadata);
        }
    }
}

control OwnEgress(inout headers_t headers, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    bit<32> bits;
    apply {
        seen.read(bits, 0);
        seen.write(0, ((bits << 1) | (bits >> 31)) ^ meta.charged_bytes ^ (meta.queue_bytes << 3)
                      ^ meta.schedule);
    }
}

V1Switch(SwitchParser(), SwitchVerifyChecksum(), OwnIngress(), OwnEgress(), SwitchComputeChecksum(),
         SwitchDeparser()) main;
"""


def outcomes(path: Path) -> tuple[Outcome, Outcome, int]:
    """Return a program's run in machine code, in the Python network, and the words kept."""
    experiment = scenario(policy="host_pkt")
    program = load_program(path, size_of(experiment.tree))
    fabric = VirtualFabric(experiment, program)
    ours = fabric.run()
    return ours, PythonFabric(experiment, program).run(), fabric.timed.packets.program.late_words


@pytest.mark.parametrize("lost", [1, 6])
def test_egress_drops_the_same_packets_in_every_engine(tmp_path: Path, lost: int) -> None:
    path = tmp_path / f"lost{lost}.p4"
    path.write_text(DROPPING.replace("LOST", str(lost)))

    ours, theirs, _ = outcomes(path)

    assert_same(ours, theirs)
    assert theirs.accounts.unrouted > 0


def test_what_egress_remembers_of_a_packet_is_that_packet_s(tmp_path: Path) -> None:
    path = tmp_path / "remembering.p4"
    path.write_text(REMEMBERING)

    ours, theirs, late_words = outcomes(path)

    assert_same(ours, theirs)
    assert late_words > 1
