"""STATEMENTS: our expectations beyond the paper, each with the criterion that decides it.

They were written down before the runs that decide them (seeds 1 to 10; of B01 to B21 the first six
were looked at before the others were run): from the paper, from the documentation's measurements
by then, and from single runs with seeds from 1,001 on.
"""

from reproduction.report.claims import POINT, Claim


def ours(
    text: str, where: str, criterion: str, margin: float = POINT, margin_in_words: str = ""
) -> Claim:
    """Return a statement: its criterion is ours, and it needs six seeds."""
    return Claim(
        text,
        where,
        criterion,
        set_by="us",
        least_seeds=6,
        margin=margin,
        margin_in_words=margin_in_words,
    )


# Points are percentage points of completion time over the bound. "Below", "above": the
# interval of paired differences lies on that side. The others: all rows but Ofan's own variants.
STATEMENTS: dict[str, Claim] = {
    "B01": ours(
        "On a fat-tree, a leaf-spine, a fabric with 2:1 oversubscription and eight rails Ofan "
        "completes a permutation before all others, the paper's and those since",
        "as figure 1 (baseline), section 7",
        "below each of the 13 others at the middle size, a check for each fabric",
        margin=0.002,
    ),
    "B02": ours(
        "On all four fabrics Ofan's lead over Switch Pkt AR grows with the fabric",
        "as figure 8 (network size), where queues of adaptive schemes grow",
        "the gap at the largest size is above that at the smallest, a check for each fabric",
    ),
    "B03": ours(
        "Where links are parallel, one pointer for each destination edge is not enough: Ofan's "
        "advantage turns; with one for each destination host it is back",
        "docs/fabrics.md",
        "leaf-spine, middle size: with pointers per edge above Switch Pkt AR, with pointers per "
        "host below it",
    ),
    "B04": ours(
        "On two levels Host DR and Themis are closer to Ofan than on three",
        "fewer places where rotations of several hosts meet",
        "Host DR - Ofan and Themis - Ofan, middle size: on the leaf-spine and on the rails below "
        "that on the fat-tree",
        margin=0.002,
    ),
    "B05": ours(
        "In every collective, with ranks placed at random, Ofan is ahead of all that do not rotate",
        "a step is as a permutation",
        "below Flow, Host Pkt AR and Switch Pkt AR, a check for each of five collectives",
        margin=0.002,
    ),
    "B06": ours(
        "A ring packed in order leaves nothing to balance: the load balancer does not matter",
        "one flow leaves an edge, so none share a link",
        "each other, Flow too, within 1 point of Ofan",
        margin=0.002,
    ),
    "B07": ours(
        "A tree leaves less to balance than an exchange in which all hosts send at once",
        "fewer flows at a time",
        "Flow - Ofan, at random places: double binary tree below halving-doubling",
    ),
    "B08": ours(
        "In collectives Host DR and Themis are as good as Ofan",
        "as in docs/load-balancers-since.md",
        "both within 1 point of Ofan in each collective and placement",
        margin=0.002,
    ),
    "B09": ours(
        "In a training step of a dense model the choice among packet schemes hardly matters; per "
        "flow does",
        "experiments/step_405b.toml: 3 % of the step is communication",
        "each packet scheme's step within 1 % of Ofan's, Flow's more than 1 % above; packed",
        margin=0.001,
        margin_in_words="0.1 % of the step",
    ),
    "B10": ours(
        "In a step of a mixture of experts less communication is exposed with Ofan than with all "
        "that do not rotate",
        "docs/workloads.md: a third of the step is communication",
        "share of the step below that of each, a check for each placement",
        margin=0.001,
        margin_in_words="0.1 % of the step",
    ),
    "B11": ours(
        "Balancing the load is worth more to a mixture of experts than to a dense model",
        "as B10",
        "step of Flow over that of Ofan: above in the mixture, a check for each placement",
        margin=0.001,
        margin_in_words="0.1 % of the step",
    ),
    "B12": ours(
        "When a switch dies and routes follow at once, Ofan keeps its lead",
        "as C26, links that have failed before",
        "G = 0, core switch and aggregation switch: below all that do not rotate, a check for each",
        margin=0.02,
    ),
    "B13": ours(
        "When a switch dies and routes follow late, the advantage turns: the other rotations, "
        "which lose the same share of every flow, are ahead of Ofan, which anchors flows",
        "C25, and single runs with seeds 1,001 to 1,003",
        "G = 4 RTT, core switch and aggregation switch: Host DR and Themis below Ofan, a check "
        "for each switch",
        margin=0.02,
    ),
    "B14": ours(
        "A link that flaps leaves Ofan ahead of all that do not rotate, whether routes follow at "
        "once or late",
        "one of 128 links; single runs with seeds 1,001 to 1,003",
        "G = 0 and G = 1 RTT: below all that do not rotate, a check for each",
        margin=0.02,
    ),
    "B15": ours(
        "A link that loses 1 % of its packets costs packet schemes a round trip, whether they "
        "rotate or not: who sent just enough learns of the loss one round trip later",
        "erasure coding; single runs with seeds 1,001 to 1,003",
        "CCT with the loss less that without: 0.5 to 1.5 zero-load RTTs for each of Ofan, Host "
        "DR, Themis, Host Pkt and Switch Pkt AR",
        margin=0.1,
        margin_in_words="0.1 round trips",
    ),
    "B16": ours(
        "When something fails under way, hosts that adapt (Host Pkt AR) are the slowest of the "
        "packet schemes, because their flows freeze",
        "against C05, whose links have failed before; single runs with seeds 1,001 to 1,003",
        "above each other packet scheme when routes follow a switch late and when a link loses "
        "packets, a check for each; with freezing switched off below that, a check for each",
        margin=0.02,
    ),
    "B17": ours(
        "Of a link at a quarter of its rate the advantage turns as long as routes do not weigh "
        "it: switches that compare queues and hosts that hear of marks are ahead of Ofan; when "
        "routes weigh it Ofan is ahead of all that do not rotate",
        "a rotation gives every path the same; docs/faults.md",
        "G = ∞: Switch Pkt AR and Host Pkt AR below Ofan; G = 0: Ofan below all that do not rotate",
        margin=0.02,
    ),
    "B18": ours(
        "With Ofan neither MSwift nor NSCC slows anybody down",
        "docs/congestion.md: nothing is marked, no delay above target",
        "increase below 1 % with either, and within 0.5 points of each other",
        margin=0.001,
    ),
    "B19": ours(
        "NSCC is ahead of MSwift under every load balancer that does not rotate",
        "docs/congestion.md, for three of the four",
        "below with Host Pkt, Host Pkt AR, Switch Pkt AR and UET Bitmap, a check for each",
        margin=0.05,
    ),
    "B20": ours(
        "With a transport that slows down UET Bitmap is ahead of random labels, which at a fixed "
        "rate it is not",
        "docs/load-balancers-since.md",
        "UET Bitmap below Host Pkt with NSCC, above it at a fixed rate",
        margin=0.02,
    ),
    "B21": ours(
        "Where a receiver is what is short, no load balancer helps",
        "its link is the only one that is full",
        "eight senders to one host, buffers without limit: each other's CCT within 2 % of Ofan's, "
        "a check for each control",
        margin=0.005,
        margin_in_words="0.5 % of the CCT",
    ),
    "B22": ours(
        "Without failures Ofan is ahead of MRC over ECMP on all four fabrics, and MRC is not close",
        "docs/load-balancers-since.md, of a fat-tree; single runs with seeds 1,001 to 1,003",
        "fixed rate, a check for each fabric: MRC - Ofan above 5 points",
        margin=0.002,
    ),
    "B23": ours(
        "Without failures MRC over ECMP stands behind random labels",
        "values that collide, by the switches' hash, do so for the connection's life",
        "fixed rate, a check for each fabric: Host Pkt below MRC",
        margin=0.002,
    ),
    "B24": ours(
        "With the transport that it is made for MRC over ECMP falls further behind",
        "a window slows down for queues that the same values make again and again; single runs "
        "with seeds 1,001 to 1,003",
        "SACK, NSCC, trimming, a check for each fabric: MRC above MRC at a fixed rate",
        margin=0.002,
    ),
    "B25": ours(
        "A link that is dead from the start turns the advantage as long as routes do not follow: "
        "MRC, whose hosts learn of it, is ahead of Ofan on all four fabrics",
        "C05, of Host Pkt AR; single runs with seeds 1,001 to 1,003",
        "fixed rate, G = ∞: MRC below Ofan, a check for each fabric",
        margin=0.02,
    ),
    "B26": ours(
        "As soon as routes have followed, Ofan is ahead of MRC again",
        "as C26",
        "fixed rate, G = 0: Ofan below MRC, a check for each fabric",
        margin=0.002,
    ),
    "B27": ours(
        "What hosts have to learn takes time: where the link dies under way, MRC gains less on "
        "Ofan than where it is dead from the start",
        "a timeout is three round trips at least, the message seven long",
        "fixed rate, G = ∞, Ofan - MRC: below that with a link that is dead from the start, a "
        "check for each fabric",
        margin=0.02,
    ),
    "B28": ours(
        "With the transport that it is made for, too, MRC is ahead of Ofan while a link is dead "
        "and routes do not follow",
        "what is sent again is lost again; single runs with seeds 1,001 to 1,003",
        "SACK, NSCC, trimming, G = ∞: MRC below Ofan with more than half of the seeds, a check for "
        "each fabric. Second form, set after the runs: the first compared means, which have no "
        "interval after 640 seeds, and are shown beside",
        margin=0.1,
        margin_in_words="10 % of the seeds",
    ),
    "B29": ours(
        "Of a link at a quarter of its rate MRC makes more than Ofan as long as routes do not "
        "weigh it; but not on rails, where a plane has sixteen of its values",
        "B17; single runs with seeds 1,001 to 1,003",
        "SACK, NSCC, trimming, G = ∞: MRC below Ofan on the fat-tree, the leaf-spine and with "
        "oversubscription, above it on the rails, a check for each",
        margin=0.02,
    ),
    "B30": ours(
        "What is lost on a dead link after hosts have learned of it is what they probe it with: "
        "MRC, which probes in every 16th turn, loses no more than a fifth of what random labels do",
        "1 / 16 = 6 % at least, where a value's packet leads through the link alone; single runs "
        "with seed 1,001",
        "fixed rate, G = ∞, packets lost with 16 MiB less those with 8 MiB, over those of Host "
        "Pkt: 5 to 20 %, a check for each fabric",
        margin=0.02,
        margin_in_words="2 % of what random labels lose",
    ),
    "B31": ours(
        "Under PFC, without a control by the receiver, spraying takes an incast's pauses to all "
        "links on the way there: Ofan, too, has a victim slowed down with every seed, while a flow "
        "on one path is hit only where paths meet",
        "docs/lossless.md; runs of another size, and of this one with seeds 1 to 8",
        "7 senders to one host, a victim to another edge of its pod: below half of the line rate "
        "with more than three quarters of the seeds with each of Host Pkt, Switch Pkt AR, Host DR "
        "and Ofan, with Flow with more than a quarter and less than three quarters",
        margin=0.1,
        margin_in_words="10 % of the seeds",
    ),
    "B32": ours(
        "Switches that learn of failures one after the other, as under BGP, are no worse than "
        "switches that all learn with the last, and no better than all with the first",
        "docs/bgp.md; up and down through a fat-tree no packet comes by a switch twice",
        "links that fail under way, each of four load balancers at each G: less than 2 % above the "
        "CCT with all at the last switch's time, less than 2 % below that with all at the first's",
        margin=0.01,
        margin_in_words="1 % of the CCT",
    ),
    "B33": ours(
        "Lags of switches turn no lead: where Ofan is ahead of another, or behind, with all "
        "switches at the last one's time, it is with lags",
        "as B32",
        "Host DR, Switch Pkt AR and Flow over Ofan at each G: never above with one and below with "
        "the other",
        margin=0.01,
        margin_in_words="1 % of Ofan's CCT",
    ),
    "B34": ours(
        "BGP's whole percents cost nothing on top of its lags",
        "docs/bgp.md: with routes at once they cost next to nothing",
        "with lags, BGP's weights over exact ones, Ofan and Switch Pkt AR at each G: CCTs less "
        "than 2 % apart",
        margin=0.01,
        margin_in_words="1 % of the CCT",
    ),
}

PLAINLY: dict[str, str] = {
    "B01": "On other fabrics, too, Ofan is the fastest.",
    "B02": "The larger the fabric, the larger Ofan's lead over switches that adapt.",
    "B03": "With parallel links, Ofan needs a pointer for each host to stay ahead.",
    "B04": "With two levels of switches, other rotations come closer to Ofan.",
    "B05": "In collectives Ofan is ahead of everything that does not rotate.",
    "B06": "In a ring of neighbours there is nothing to balance.",
    "B07": "Trees leave less to balance than exchanges among all.",
    "B08": "In collectives the other rotations are as good as Ofan.",
    "B09": "Training a dense model, any scheme that balances packets will do.",
    "B10": "Training a mixture of experts, less communication is exposed with Ofan.",
    "B11": "A mixture of experts gains more from load balancing than a dense model.",
    "B12": "A dead switch leaves Ofan ahead if routes change at once.",
    "B13": "A dead switch puts other rotations ahead of Ofan if routes change late.",
    "B14": "A flapping link does not cost Ofan its lead.",
    "B15": "A link that loses packets costs everybody a round trip.",
    "B16": "Hosts that adapt suffer most from what fails under way, as they freeze.",
    "B17": "A slow link costs Ofan its lead until routes weigh it.",
    "B18": "With Ofan congestion control has nothing to do.",
    "B19": "Ultra Ethernet's congestion control is ahead of MSwift wherever queues grow.",
    "B20": "UET Bitmap needs a transport that slows down.",
    "B21": "Where the receiver is the bottleneck, load balancing does not help.",
    "B22": "Without failures MRC over ECMP is far behind Ofan on all fabrics.",
    "B23": "Without failures MRC over ECMP is behind random labels.",
    "B24": "A transport that slows down leaves MRC over ECMP further behind.",
    "B25": "A dead link that routes do not know puts MRC ahead of Ofan.",
    "B26": "As soon as routes follow, Ofan is ahead of MRC again.",
    "B27": "A link that dies under way leaves MRC little time to learn of it.",
    "B28": "With its own transport, too, MRC bears a dead link better than Ofan.",
    "B29": "A slow link that routes do not weigh puts MRC ahead of Ofan, but on rails.",
    "B30": "Probes of a dead link cost a fraction of what random labels lose on it.",
    "B31": "Under PFC, spraying takes an incast's pauses everywhere: Ofan's victims are slow, too.",
    "B32": "Switches that learn one after the other are as good as the last of them.",
    "B33": "The order of load balancers is the same if switches learn one after the other.",
    "B34": "Under BGP coarse weights cost nothing on top of late ones.",
}
