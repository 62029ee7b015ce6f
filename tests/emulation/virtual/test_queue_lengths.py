"""Queue lengths that a program counts itself: the network takes dropped packets out of them."""

from pathlib import Path

import pytest

from emulation.errors import UnsupportedError
from emulation.programs.switch_program import Size, load_program
from emulation.virtual.fabric import VirtualFabric
from fattree.experiment.model import Collective, Fabric, Scenario

OWN_LENGTHS = """
#define QUEUE_STATS_P4
#include "sizes.p4"
#include "fabric.p4"
#include "schedule.p4"
register<bit<32>>(CELLS) queue_bytes;
#define CONTROL(NAME) control NAME(inout metadata_t meta, \\
                                   inout standard_metadata_t standard_metadata)
CONTROL(Enqueue) { apply { meta.charged_bytes = standard_metadata.packet_length; } }
CONTROL(Dequeue) { apply { } }
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply {
        queue_bytes.write(0, standard_metadata.packet_length);
        schedule.apply(meta.schedule, 0, standard_metadata);
    }
}
#include "switch.p4"
"""
# Nine hosts send to host 0, and its edge drops packets.
INCAST = Scenario(
    fabric=Fabric(k=4, queue_bytes=3 * 4200),
    collective=Collective(
        matrix="pairs", pairs=tuple((host, 0) for host in range(4, 13)), message_bytes=50_000
    ),
)


def network(folder: Path, cells: int, is_interpreted: bool) -> VirtualFabric:
    path = folder / f"lengths_{cells}.p4"
    path.write_text(OWN_LENGTHS.replace("CELLS", str(cells)))
    program = load_program(path, Size(uplinks=2))
    return VirtualFabric(INCAST, program, is_interpreted=is_interpreted)


@pytest.mark.parametrize("is_interpreted", [False, True])
def test_lengths_have_a_cell_for_each_port(tmp_path: Path, is_interpreted: bool) -> None:
    # Ports have the numbers 1 to 4.
    with pytest.raises(UnsupportedError, match=r"queue_bytes needs 5 cells, .*, and has 4:"):
        network(tmp_path, 4, is_interpreted)

    outcome = network(tmp_path, 5, is_interpreted).run()
    assert outcome.accounts.dropped > 0 and outcome.accounts.unaccounted == 0


def test_one_thread_writes_the_log_of_events() -> None:
    digests = [VirtualFabric(INCAST, threads=threads).run().digest for threads in (1, 2)]
    assert digests[0] and digests[0] == digests[1]
