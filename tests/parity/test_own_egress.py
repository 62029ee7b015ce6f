"""A program of a user's own, whose egress drops packets of a priority that ingress gave them."""

from pathlib import Path

import pytest

from emulation.programs.switch_program import load_program, size_of
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.machine import NativeMachine
from emulation.virtual.native import NativeFabric
from tests.parity.test_native_equals_virtual import assert_same, scenario

PROGRAM = """
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


@pytest.mark.parametrize("lost", [1, 6])
def test_egress_drops_the_same_packets_in_every_engine(tmp_path: Path, lost: int) -> None:
    path = tmp_path / f"lost{lost}.p4"
    path.write_text(PROGRAM.replace("LOST", str(lost)))
    wanted = scenario(policy="host_pkt")
    program = load_program(path, size_of(wanted.tree))

    theirs = VirtualFabric(wanted, program).run()
    machine = NativeFabric(
        wanted, program, compile_for=lambda pipelines: NativeMachine(wanted, pipelines)
    )

    assert_same(machine.run(), theirs)
    assert theirs.accounts.unrouted > 0
