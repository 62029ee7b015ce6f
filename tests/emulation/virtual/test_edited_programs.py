"""A program that is edited between two runs of a process: each run has the program as it is."""

from pathlib import Path

from emulation.virtual import simulated
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.texts.shipped import EXPERIMENTS

PROGRAM = (EXPERIMENTS / "two_choices.p4").read_text()
FIRST_UPLINK = """#include "fabric.p4"
#include "schedule.p4"
#include "mine.p4"
control LoadBalancer(inout headers_t headers, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Schedule() schedule;
    apply {
        schedule.apply(meta.schedule, 0, standard_metadata);
        standard_metadata.egress_spec = FIRST;
    }
}
#include "switch.p4"
"""


def test_each_run_has_the_program_as_it_is(tmp_path: Path) -> None:
    path, included = tmp_path / "edited.p4", tmp_path / "mine.p4"
    collective = Collective(matrix="pairs", pairs=((0, 15),), message_bytes=65_536)
    scenario = Scenario(fabric=Fabric(k=4), collective=collective, policy="simple_rr")
    mine = scenario.model_copy(update={"program": str(path)})

    def used_uplinks() -> list[bool]:
        result = simulated.run(mine)
        # Ports 3 and 4 of the first edge switch.
        return [bool(count) for count in result.ports.packets[2:4]]

    path.write_text(PROGRAM)
    assert used_uplinks() == [True, True]
    path.write_text(FIRST_UPLINK)
    for port, used in ((3, [True, False]), (4, [False, True])):
        included.write_text(f"const bit<9> FIRST = {port};\n")
        assert used_uplinks() == used
