"""A program with probes, which edges answer, and drawn experiments with it."""

from pathlib import Path
from random import Random

from fattree.experiment.model import Scenario
from tests.parity.own_programs import FAULTS, drawn

# Probes and answers take random uplinks; edges count them, and the links that they have passed.
PROBES = """
header crossed_t { bit<8> links; bit<16> tag; }
#define EDGE_HEADER crossed_t
#define EACH_LINK
#ifndef PROBE_INTERVAL_US
#define PROBE_INTERVAL_US 2
#endif
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
        if (meta.edge == meta.source_edge && !meta.is_answer) {
            headers.edge_header.tag = meta.is_probe ? 16w7 : 16w9;
        }
    }
}

CONTROL(EachLink) {
    apply { headers.edge_header.links = headers.edge_header.links + 1; }
}

CONTROL(Feedback) {
    register<bit<32>>(16) tags;
    bit<32> count;

    apply {
        tags.read(count, (bit<32>) headers.edge_header.tag);
        tags.write((bit<32>) headers.edge_header.tag, count + 1);
    }
}

CONTROL(Probe) {
    register<bit<32>>(MAX_ROUTES / 2) probes;
    register<bit<32>>(MAX_ROUTES / 2) answers;
    register<bit<32>>(MAX_ROUTES / 2) probe_links;
    register<bit<32>>(MAX_ROUTES / 2) answer_links;
    bit<32> edge;
    register<bit<32>>(16) probe_tags;
    bit<32> count;

    apply {
        edge = (bit<32>) meta.source_edge;
        probe_tags.read(count, (bit<32>) headers.edge_header.tag);
        probe_tags.write((bit<32>) headers.edge_header.tag, count + 1);
        if (meta.is_answer) {
            answers.read(count, edge);
            answers.write(edge, count + 1);
            answer_links.read(count, edge);
            answer_links.write(edge, count + (bit<32>) headers.edge_header.links);
        } else {
            probes.read(count, edge);
            probes.write(edge, count + 1);
            probe_links.read(count, edge);
            probe_links.write(edge, count + (bit<32>) headers.edge_header.links);
        }
#ifndef SILENT
        meta.answers = true;
#endif
    }
}

#include "switch.p4"
"""
HEADER_BYTES = 3


def probing(folder: Path) -> Path:
    """Return the file of the probing program, in a folder."""
    file = folder / "probing.p4"
    file.write_text(PROBES, encoding="utf-8")
    return file


def case(number: int, folder: Path) -> Scenario:
    """Return the drawn experiment of a number: shared memory, trimming and faults, no pauses."""
    random = Random(f"probes {number}")
    shares, trims = ((False, False), (True, False), (False, True))[number % 3]
    settings = drawn(
        random, "simple_rr", pauses=False, shares=shares, trims=trims, faults=FAULTS[number % 6]
    )
    settings["policy"] = random.choice(("simple_rr", "ofan"))
    settings["defines"] = {"PROBE_INTERVAL_US": str(random.choice((1, 2, 7)))}
    return Scenario.model_validate(settings | {"program": str(probing(folder))})
