"""The output of `ofan registers`: all registers and counters of a program, through P4Runtime."""

import json

from controller.pipeline import Pipeline
from controller.session import InProcess, Session
from emulation.held import switch_view
from emulation.held.messages import ArrayView
from emulation.outcomes.switch_state import in_words, short_name
from ofan_p4.compiler import compile_source
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

# Two controls with a register of the same last name, a counter, and a value of more than 64 bits.
PROGRAM = """
#include <core.p4>
#include <v1model.p4>

struct none_t { }
struct meta_t { }

parser P(packet_in packet, out none_t headers, inout meta_t meta,
         inout standard_metadata_t standard_metadata) {
    state start { transition accept; }
}

control Check(inout none_t headers, inout meta_t meta) { apply { } }

control Inward(inout none_t headers, inout meta_t meta,
               inout standard_metadata_t standard_metadata) {
    register<bit<96>>(4) seen;
    counter(3, CounterType.packets_and_bytes) passed;

    apply {
        seen.write(2, 96w1 << 80);
        passed.count(1);
        standard_metadata.egress_spec = 2;
    }
}

control Outward(inout none_t headers, inout meta_t meta,
                inout standard_metadata_t standard_metadata) {
    register<bit<8>>(2) seen;

    apply {
        bit<8> before;
        seen.read(before, 0);
        seen.write(0, before + 1);
    }
}

control Deparse(packet_out packet, in none_t headers) { apply { } }

V1Switch(P(), Check(), Inward(), Outward(), Check(), Deparse()) main;
"""


def test_all_arrays_are_read_by_their_whole_names() -> None:
    program = compile_source(PROGRAM)
    switch = Switch(1, lambda: 0, lambda low, _high: low, range(1, 5))
    session = Session(
        InProcess(P4RuntimeService(switch), StatusError), Pipeline(program.p4info), 1, "edge0_0"
    )
    session.open()
    session.push(json.dumps(program.json).encode())

    for _ in range(3):
        (pending,) = switch.ingress(1, bytes(60), None)
        switch.egress(pending, 0)

    seen = switch_view.arrays(session.read_arrays())
    assert sorted(seen, key=lambda row: row.array) == [
        ArrayView("Inward.passed", size=3, cells={1: [3, 180]}),
        ArrayView("Inward.seen", size=4, cells={2: [1 << 80]}),
        ArrayView("Outward.seen", size=2, cells={0: [3]}),
    ]


def test_cells_are_one_line_and_names_are_short() -> None:
    assert short_name("MyIngress.balancer.last_seen") == "balancer.last_seen"
    assert in_words([(1, [3, 180]), (5, [1, 60])]) == "1: 3 packets, 180 B; 5: 1 packets, 60 B"
    assert in_words([(n, [n]) for n in range(1, 9)]).endswith("6: 6; and 2 more")
