"""A program with a header between edges, in which links are counted, and drawn experiments."""

from pathlib import Path
from random import Random

from fattree.experiment.model import Scenario
from fattree.texts.shipped import EXPERIMENTS
from tests.parity.own_programs import FAULTS, SWITCHES, drawn

# Random uplinks; the destination's edge adds up the links of packets' paths, by their first uplink.
COUNTS_LINKS = """
header links_t { bit<8> uplink; bit<8> links; bit<16> group; }
#define EDGE_HEADER links_t
#define EACH_LINK
#include "fabric.p4"
#define CONTROL(NAME) control NAME(inout headers_t headers, inout metadata_t meta, \\
                                   inout standard_metadata_t standard_metadata)

CONTROL(LoadBalancer) {
    Schedule() schedule;
    bit<16> draw;

    apply {
        random(draw, 16w0, 16w0xFFFF);
        draw = (bit<16>) (((bit<32>) draw * (bit<32>) meta.length) >> 16);
        schedule.apply(meta.schedule, draw, standard_metadata);
        if (meta.edge == meta.source_edge) {
            headers.edge_header.uplink = (bit<8>) standard_metadata.egress_spec;
            headers.edge_header.group = meta.group;
        }
    }
}

CONTROL(EachLink) {
    apply { headers.edge_header.links = headers.edge_header.links + 1; }
}

CONTROL(Feedback) {
    register<bit<32>>(256) links;
    register<bit<32>>(64) of_edge;
    bit<32> count;

    apply {
        links.read(count, (bit<32>) headers.edge_header.uplink);
        count = count + (bit<32>) headers.edge_header.links;
        links.write((bit<32>) headers.edge_header.uplink, count);
        of_edge.read(count, (bit<32>) meta.source_edge);
        of_edge.write((bit<32>) meta.source_edge, count + 1);
    }
}

#include "switch.p4"
"""
HEADER_BYTES = 4
MOST_HEADER_BYTES = 16


def counting(folder: Path) -> Path:
    """Return the file of the counting program, in a folder."""
    file = folder / "counts_links.p4"
    file.write_text(COUNTS_LINKS, encoding="utf-8")
    return file


def case(number: int, folder: Path) -> Scenario:
    """Return the drawn experiment of a number: pauses, shared memory, trimming and faults."""
    random = Random(f"edge header {number}")
    pauses, shares, trims = SWITCHES[number % len(SWITCHES)]
    faults = FAULTS[(number + number // len(SWITCHES)) % len(FAULTS)]
    settings = drawn(random, "simple_rr", pauses=pauses, shares=shares, trims=trims, faults=faults)
    # Room for five headers: of the packets beyond the threshold, and of those below it.
    settings["fabric"]["queue_bytes"] += 5 * MOST_HEADER_BYTES if pauses else 0
    programs = (counting(folder), EXPERIMENTS / "gallery" / "conga.p4")
    settings["policy"] = random.choice(("simple_rr", "ofan"))
    return Scenario.model_validate(settings | {"program": str(programs[number % 2])})
