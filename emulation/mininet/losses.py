"""Links that lose a share of their packets by chance: the kernel draws, where the packet is sent.

A classifier at an interface's egress drops it and the `clsact` discipline counts it, beside
whatever else shapes the interface. Probes pass, as in virtual time: they tell dead links from
living ones, and a link of `failures.losses` is alive.
"""

from collections.abc import Mapping, Sequence

from controller.plan import PROBE_ETHERTYPE
from emulation.errors import NetworkError
from emulation.mininet.kernel import tc_batch
from fattree.experiment.model import Scenario
from fattree.routes.failures import loss_thresholds
from fattree.shape.addressing import host_interface_name, interface_name
from hostagent.agents.process import inside

# Of <linux/filter.h>: a packet's EtherType, and where a program finds a number drawn by the kernel.
ETHERTYPE = 12
DRAWN = 0xFFFFF000 + 56
# Instructions of classic BPF: load 2 or 4 bytes, jump if equal or greater, return.
LOAD_HALF, LOAD, IF_EQUAL, IF_GREATER, RETURN = 40, 32, 21, 37, 6
# Of <linux/pkt_cls.h>.
PASS = 0
DROP = 2


def lose_packets(scenario: Scenario, host_processes: Sequence[int]) -> None:
    """Let links lose packets, both ways, by `failures.losses`.

    In this thread's network namespace and those of the hosts; raises NetworkError.
    """
    tree = scenario.tree
    of_links, of_hosts = loss_thresholds(scenario)
    ends = {end: lost for link, lost in of_links.items() for end in tree.link_ends(link)}
    ends |= {tree.access(host): lost for host, lost in of_hosts.items()}
    spares_probes = scenario.controller.detection == "probe"

    _attach({interface_name(tree, *end): lost for end, lost in ends.items()}, spares_probes)
    for host, lost in of_hosts.items():
        with inside(host_processes[host]):
            _attach({host_interface_name(tree, host): lost}, spares_probes)


def _attach(thresholds: Mapping[str, int], spares_probes: bool) -> None:
    commands = [
        command
        for name, lost in thresholds.items()
        if lost
        for command in (
            f"qdisc add dev {name} clsact",
            f"filter add dev {name} egress bpf direct-action bytecode"
            f" {bytecode(lost, spares_probes)}",
        )
    ]
    try:
        tc_batch(commands)
    except NetworkError as error:
        raise NetworkError(
            f"failures.losses: this kernel cannot lose packets on links ({error}; it wants"
            " sch_ingress and cls_bpf): take --network virtual or sim"
        ) from None


def bytecode(lost: int, spares_probes: bool) -> str:
    """Return a filter for `tc` that drops packets with 32-bit draws below `lost`, 1 to 2**32."""
    program = [(LOAD, 0, 0, DRAWN), (IF_GREATER, 1, 0, lost - 1)]
    if spares_probes:
        # Past the three instructions that draw and drop.
        program = [(LOAD_HALF, 0, 0, ETHERTYPE), (IF_EQUAL, 3, 0, PROBE_ETHERTYPE), *program]

    program += [(RETURN, 0, 0, DROP), (RETURN, 0, 0, PASS)]
    instructions = (" ".join(map(str, instruction)) for instruction in program)
    return f'"{len(program)},{",".join(instructions)}"'
