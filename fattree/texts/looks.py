"""One look for each load balancer, in every picture: colour, marker and line.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, then darker neighbours for
the rarely drawn; marker and line separate rows of like colours. Series that are no load balancer
(layers, networks, phases) are slate, so that a colour always means the same.
"""

from typing import NamedTuple


class Look(NamedTuple):
    """A colour, and a marker and a line in matplotlib's letters."""

    colour: str
    marker: str
    line: str


LOOKS = {
    "flow": Look("#000000", "x", ":"),
    "subflow": Look("#7f7f7f", "+", ":"),
    "host_flowlet_ar": Look("#8c6d46", "1", ":"),
    "host_pkt": Look("#56B4E9", "v", "--"),
    "host_pkt_ar": Look("#0072B2", "^", "--"),
    "switch_pkt": Look("#F0E442", "<", "-."),
    "simple_rr": Look("#b8860b", ">", "-."),
    "simple_rr_shared": Look("#dcc27a", ">", ":"),
    "switch_pkt_ar": Look("#E69F00", "s", "-"),
    "switch_pkt_ar_stale": Look("#f3cc73", "s", ":"),
    "jsq": Look("#D55E00", "D", "-"),
    "jsq_stale": Look("#ea9d68", "D", ":"),
    "rsq": Look("#CC79A7", "p", "-"),
    "host_dr": Look("#009E73", "P", "--"),
    "ofan": Look("#7A1FA2", "o", "-"),
    "ofan_fib": Look("#B58AD0", "h", ":"),
    "ofan_jsq_start": Look("#3D0F52", "*", ":"),
    "themis": Look("#556B2F", "X", "-."),
    "uet_bitmap": Look("#1B4F72", "d", "--"),
    "mrc": Look("#A0522D", "3", "--"),
    "mrc_srv6": Look("#6B3A1F", "3", "-"),
}
# A user's own programs and rules, in the order of a picture.
OWN = (Look("#5A9E00", "8", "-"), Look("#00838F", "H", "--"), Look("#827717", "2", "-."))
# From dark to light.
SLATES = ("#263238", "#455A64", "#607D8B", "#90A4AE", "#B0BEC5")
GRID = "#dddddd"
# Whatever a reader must not miss: a difference, a bound.
ALERT = "#c00000"


def looks_of(policies: list[str]) -> dict[str, Look]:
    """Return the look of each load balancer of a picture, by slug or by a program's file name."""
    user_names = [policy for policy in dict.fromkeys(policies) if policy not in LOOKS]
    looks = LOOKS | {policy: OWN[number % len(OWN)] for number, policy in enumerate(user_names)}

    return {policy: looks[policy] for policy in policies}
