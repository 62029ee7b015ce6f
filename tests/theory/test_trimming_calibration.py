"""With trimming an incast takes about its link's time, and hardly a flow waits for a timeout.

docs/transport.md has the figures.
"""

import pytest

from fattree.experiment.model import Collective, Fabric, Scenario, Transport
from sim.runs.engine import run

MESSAGE = 8 << 20


def incast(senders: int, trimming: bool) -> tuple[float, int]:
    """Return the CCT over the link's time, and the packets sent again without having been cut."""
    scenario = Scenario(
        policy="ofan",
        seed=1,
        fabric=Fabric(k=8),
        collective=Collective(
            matrix="pairs",
            message_bytes=MESSAGE,
            pairs=tuple((4 + sender, 0) for sender in range(senders)),
        ),
        transport=Transport(recovery="sack", congestion="nscc", trimming=trimming),
    )
    result = run(scenario)
    packets = senders * MESSAGE // 4096
    again = int(result.transmissions.sum() - packets - result.ports.trimmed.sum())
    return result.cct_ps / (packets * scenario.slot_ps), again


@pytest.mark.parametrize("senders", [8, 32])
def test_an_incast_takes_as_long_as_its_link_needs(senders: int) -> None:
    over_link, again = incast(senders, trimming=True)
    # Six of 65,536 packets were late holes, or timed out.
    assert 1 <= over_link <= 1.03 and again < 10
    without, lost = incast(senders, trimming=False)
    assert without > over_link and lost > 0
