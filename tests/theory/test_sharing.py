"""Shared memory in closed form: N full queues hold alpha B / (1 + alpha N) each."""

from typing import Any

import pytest

from emulation.errors import EmulationError, UnsupportedError
from emulation.mininet.limits import refuse_unsupported as refuse_on_mininet
from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from sim.arrays.network import build
from sim.runs.engine import run
from tests.python_network.fabric import PythonFabric

PACKET = 4096 + 62
PORT_BYTES = 200_000
# The receivers of most queues, with two senders each, and an unused uplink.
MOST = 5
PORTS = 3 * MOST + 1


def scenario(queues: int = 1, **fabric: Any) -> Scenario:
    """Return a leaf with hosts that send to some receivers, two to each, at line rate."""
    leaf = {"edges_per_pod": 1, "hosts_per_edge": PORTS - 1, "aggs_per_pod": 1}
    pairs = [(MOST + 2 * queue + sender, queue) for queue in range(queues) for sender in range(2)]
    return Scenario.model_validate(
        {
            "policy": "flow",
            "fabric": leaf | {"queue_bytes": PORT_BYTES, "buffer": "shared"} | fabric,
            # With alpha 8 a queue grows by half a packet a slot to 711 packets.
            "collective": {"matrix": "pairs", "message_bytes": 2000 * 4096, "pairs": pairs},
            # Hosts begin at random phases. Where all come at one instant, a slot has set free alpha
            # packets more for each queue, which go to the first packets.
            "transport": {"receiver_share": False},
        }
    )


@pytest.mark.parametrize("alpha", [0.125, 0.5, 1, 2, 8])
@pytest.mark.parametrize("queues", [1, 2, MOST])
def test_full_queues_hold_what_the_closed_form_says(queues: int, alpha: float) -> None:
    result = run(scenario(queues, buffer_alpha=alpha))
    share = alpha * PORTS * PORT_BYTES / (1 + alpha * queues)
    longest = result.ports.max_queue_bytes[:queues]
    assert result.ports.dropped[:queues].all() and result.ports.dropped[queues:].sum() == 0
    assert longest == pytest.approx(share, abs=PACKET)


def test_a_queue_alone_has_more_than_its_port_would() -> None:
    static = run(scenario(buffer="static"))
    shared = run(scenario())
    assert static.ports.max_queue_bytes[0] <= PORT_BYTES
    assert shared.ports.max_queue_bytes[0] == pytest.approx(PORTS * PORT_BYTES / 2, abs=PACKET)
    assert shared.ports.dropped.sum() < static.ports.dropped.sum()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"fabric": {"queue_bytes": 0}}, "without a limit nothing is shared"),
        ({"fabric": {"queue_bytes": 5_000, "buffer_alpha": 0.05}}, "have no room for a packet"),
        ({"fabric": {"buffer": "static", "buffer_alpha": 1}}, "needs fabric.buffer"),
    ],
)
def test_what_does_not_go_with_sharing_is_refused(settings: dict[str, Any], reason: str) -> None:
    fabric = {"k": 4, "buffer": "shared"} | settings.pop("fabric", {})
    chosen = Scenario.model_validate({"fabric": fabric} | settings)
    with pytest.raises((ExperimentError, EmulationError), match=reason):
        PythonFabric(chosen)
    with pytest.raises(ExperimentError, match=reason):
        build(chosen)


def test_networks_whose_ports_cannot_share_say_so() -> None:
    chosen = scenario()
    with pytest.raises(UnsupportedError, match="a limit of its own"):
        refuse_on_mininet(chosen)
