"""Round-trip times and timeouts of a sender (RFC 6298, in integers)."""

from hostagent.transports.parts import part


@part
def timeout_ps(sender, rules):
    """Return after how long a packet times out: srtt + 4 rttvar (RFC 6298), or the rules' floor.

    Its label is then avoided (REPS, PLB); with SACK it is sent again.
    """
    # The floor keeps REPS from freezing without a failure: rttvar shrinks while queues are
    # steady, and the next packet through a longer queue would look lost.
    # An ACK may wait for the packets that it is to report, as far apart as they leave.
    wait_ps = (rules.packets_per_ack - 1) * max(sender.gap_ps, sender.pace_ps)
    if sender.srtt_ps < 0:
        return wait_ps + max(3 * rules.zero_load_rtt_ps, rules.timer_floor_ps)

    return wait_ps + max(sender.srtt_ps + 4 * sender.rttvar_ps, rules.timer_floor_ps)


@part
def sample_rtt(sender, rtt_ps):
    """Feed one round-trip time into srtt and rttvar (gains 1/8 and 1/4, in integers)."""
    if sender.srtt_ps < 0:
        sender.srtt_ps = rtt_ps
        sender.rttvar_ps = rtt_ps >> 1
        return

    # rttvar sees the error against the srtt before this sample (RFC 6298, 2.3). The shifts round
    # down, below zero too, in Python as in kernels: all networks have the same timers.
    error = rtt_ps - sender.srtt_ps
    sender.rttvar_ps += (abs(error) - sender.rttvar_ps) >> 2
    sender.srtt_ps += error >> 3
