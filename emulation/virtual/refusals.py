"""The scenarios that no network in virtual time runs."""

from emulation.errors import UnsupportedError
from fattree.experiment.model import Scenario
from fattree.routes.buffers import refuse_unable_pauses, refuse_unable_sharing
from hostagent.rules import refuse_unable_hosts


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise UnsupportedError where the scenario needs more than virtual time offers.

    Raises ExperimentError where it needs more than hosts offer on any network.
    """
    refuse_unable_hosts(scenario)
    refuse_unable_pauses(scenario)
    refuse_unable_sharing(scenario)
    if scenario.load_balancer.queue_staleness_ns:
        raise UnsupportedError(
            "load_balancer.queue_staleness_ns: time stamps in P4 are whole microseconds, so that a"
            " snapshot 100 ns old cannot be kept; only the simulator's kernels age queue lengths"
            " (ofan sim run without --program and --as p4)"
        )

    if scenario.controller.kind == "bgp":
        raise UnsupportedError(
            'controller.kind = "bgp": routers (FRR) run in real time, on --network mininet;'
            " --set controller.weights=bgp has their weights on any network"
        )

    if scenario.controller.detection == "netlink":
        raise UnsupportedError(
            'controller.detection = "netlink": '
            "virtual links have no kernel interfaces (--network mininet)"
        )
