"""A controller for `test_takeover` to kill: it breaks and mends links on switches at sockets in a
folder, for ever.

Not a test: python tests/controller/doomed.py FOLDER ELECTION_ID
"""

import sys
from itertools import cycle
from pathlib import Path

from controller.fabric_controller import FabricController, LinkChange
from controller.fleet import Access, Fleet
from controller.grpc_transport import GrpcTransport
from emulation.programs.switch_program import built_in, size_of
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import switch_name

SCENARIO = Scenario(policy="ofan", fabric=Fabric(k=4))
ROUNDS = (frozenset({16}), frozenset({0, 20}), frozenset[int]())


def start(folder: Path, election_id: int) -> tuple[FabricController, Fleet]:
    """Return a controller that has read back all switches."""
    program, tree = built_in(SCENARIO.scheme.program, size_of(SCENARIO.tree)), SCENARIO.tree
    brain = FabricController(SCENARIO, program.pipeline)

    def connect(switch: int) -> GrpcTransport:
        return GrpcTransport(f"unix:{folder / switch_name(tree, switch)}.grpc", deadline_s=10)

    access = Access(program.bmv2_json, program.pipeline, connect, lambda _switch: True, election_id)
    fleet = Fleet(brain, access)
    fleet.open()
    return brain, fleet


def main() -> None:
    """Drive the switches until killed; say `planned` when the first plan is in."""
    brain, fleet = start(Path(sys.argv[1]), int(sys.argv[2]))
    fleet.write(brain.start())
    sys.stdout.write("planned\n")
    sys.stdout.flush()
    for failed in cycle(ROUNDS):
        fleet.write(brain.on_event(0, LinkChange(failed - brain.failed, brain.failed - failed)))


if __name__ == "__main__":
    main()
