"""CLAIMS: the paper's claims, each with the criterion that decides it, fixed before looking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reproduction.report.figure import FAILS, FEW, HOLDS, OPEN, PARTLY, Outcome, Verdict

SetBy = Literal["the paper", "the paper; margins: us", "us"]
# A percentage point of completion time over the bound: the margin of most claims.
POINT = 0.01


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim in our words, where the paper makes it, and its criterion."""

    text: str
    where: str
    criterion: str
    # Who set the criterion, or its margins where the paper gives the rest.
    set_by: SetBy = "the paper"
    # With fewer a verdict is not given, none where nothing is drawn at random.
    least_seeds: int = 10
    # A claim that is shown to clear its line by less has not cleared it (`report.looks`). Ours, all
    # of them; 0 where nothing is measured by an interval.
    margin: float = POINT
    # The margin in words where it is not in points alone.
    margin_in_words: str = ""

    @property
    def margin_text(self) -> str:
        """Return the margin with its unit, nothing where there is none."""
        points = 100 * self.margin
        unit = "point" if points == 1 else "points"
        return self.margin_in_words or (f"{points:g} {unit}" if points else "")


# Numbers in the claims are the paper's, margins that it does not give are ours. "Differ" and
# "equal": the interval of paired differences excludes or includes 0.
CLAIMS: dict[str, Claim] = {
    "C01": Claim(
        "Permutation bound for 256 packets is 17.05694 µs; 78 packets before the first ACK; "
        "mode 3 after ACK 179; two opposite flows alone nearly reach it",
        "appendix B",
        "bound exact; measured within 10^-3 at k = 4 and 8, best of 1,000, from the first packet "
        "and from the start",
        set_by="the paper; margins: us",
        least_seeds=1000,
        margin=0,
    ),
    "C02": Claim(
        "Permutation, no failure: every packet scheme beats flowlets, subflows, flows; packet "
        "schemes are close to each other",
        "figure 1b (baseline)",
        "every pair differs in that direction; packet schemes' means within 15 points",
        set_by="the paper; margins: us",
    ),
    "C03": Claim(
        "All-to-all, no failure: packet schemes within 1 % of the bound (about 1.3 ms); Host "
        "Flowlet AR within 16 %; subflows help less than in the permutation",
        "figure 1a (baseline)",
        "against what a host's link needs for data and ACKs, from the start, at least 10 seeds; "
        "the plain sum printed beside; "
        "ratio flow/subflow smaller than in C02",
        margin=0.001,
        margin_in_words="0.1 points; of flowlets 1 point",
    ),
    "C04": Claim(
        "Host Flowlet AR is worse than Subflow in the permutation",
        "figure 1 (baseline)",
        "differ",
        margin=0.05,
    ),
    "C05": Claim(
        "1 % failed links, G = infinity: Host Pkt AR wins in both matrices; it is about 20 % "
        "above its failure-free permutation",
        "figure 3 (G = inf)",
        "differ from each other packet scheme; ratio within 10 to 30 %",
        set_by="the paper; margins: us",
    ),
    "C06": Claim(
        "Small G: Switch Pkt AR and Host Pkt AR equal; all-to-all tolerates G to about 10 RTT, "
        "the permutation 1 to 2 RTT; at large G Switch Pkt AR in all-to-all falls behind Host "
        "Pkt AR without convergence",
        "figure 4 (varying G)",
        "first G at which they differ; order at the largest G",
        set_by="the paper; margins: us",
        margin=0.02,
        margin_in_words="2 points, 2 % of a ratio",
    ),
    "C07": Claim(
        "G = 0: CCT rises with the failure rate; gaps between schemes do not change",
        "figure 5 (failure rate)",
        "normalised to the failure-free bound; slope > 0; no pairwise gap changes by more than "
        "3 points with its interval",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 point; 0.5 of a slope",
    ),
    "C08": Claim(
        "Max queue against message size: Simple RR, JSQ nearly linear; RSQ, Host Pkt, Host Pkt "
        "AR, Switch Pkt AR like a square root; Host DR, Ofan constant; CCT follows max queue",
        "figure 6 (growth), theorems 1 to 3",
        "unlimited capacity, thresholds of 800 KB; exponents fitted in mode 1 (8 to 64 packets) "
        "and beyond, separately; the three groups' intervals do not overlap and are in order; "
        "linear group above 0.8 in mode 1; rank correlation of CCT and max queue > 0.9",
        set_by="the paper; margins: us",
        margin=0.05,
        margin_in_words="0.05 of an exponent",
    ),
    "C09": Claim(
        "Worst link overload per stage against packet size, inter-pod permutation: Simple RR, "
        "JSQ perfect on uplinks, poor on downlinks; other non-DR poor on both; Host DR perfect "
        "at 1 MB but not at 32 KB, where Ofan is better",
        "figure 7 (overload)",
        "perfect = under 5 % over the ideal; poor = over 10 %; in packets and in bytes; Simple "
        "RR with both forms of its pointer",
        set_by="the paper; margins: us",
        margin=0.005,
    ),
    "C10": Claim(
        "Order and size of the differences stay as the network grows",
        "figure 8 (network size)",
        "no pair that differs in one direction at one size differs in the other at another; "
        "gaps above 1 point stay within a factor 2",
        set_by="us",
        margin=0.01,
        margin_in_words="1 point; 0.25 of the factor",
    ),
    "C11": Claim(
        "20-packet buffers: permutation: Switch Pkt AR beats Host Pkt AR; Ofan best",
        "figure 9 (buffers)",
        "differ; with queue readings of 0 and of 100 ns",
        margin=0.01,
        margin_in_words="1 point; in the all-to-all 0.1 points",
    ),
    "C12": Claim(
        "Message size: order stays, gaps shrink; Host Pkt AR notably worse at very large "
        "messages (freezing)",
        "figure 10 (message size)",
        "all schemes, all sizes: no pair changes direction; gaps shrink from their peak on; "
        "Host Pkt AR beyond 1 MB rises again from its minimum by more than its interval, with "
        "freezing seen in the counters",
        set_by="us",
    ),
    "C13": Claim(
        "Packet size: a sweet spot; the choice moves CCT by up to 10 %; optimum payload sqrt(D "
        "H / alpha), H = 82 B, alpha = 10; D^(1/3) for square-root schemes",
        "figure 11 (packet size), theorem 5",
        "the choice moves CCT by 5 to 15 % between the best and the worst payload at 0.5 MB, up "
        "to jumbo frames, with each scheme; interior minimum; measured optimum within a factor 1.5 "
        "of the model's (second form, set after the second report)",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 % of the CCT",
    ),
    "C14": Claim(
        "SACK thresholds 6 (all-to-all), 32 (permutation) best; order unchanged, Ofan best; "
        "reordering bound 5 q r / b: 8 and 1,000 packets",
        "figure 12 (SACK)",
        "sweep of thresholds, those within the interval of the best count as best; order: as "
        "C10, between SACK and erasure; Ofan below each other; arithmetic exact",
        set_by="us",
        margin=0.01,
        margin_in_words="1 point; in the all-to-all 0.25 points",
    ),
    "C15": Claim(
        "MSwift: alike at 1 MB; at 16 MB Host Pkt AR and Switch Pkt AR lose about 10 points, "
        "Ofan's increase is an order of magnitude below its own at 1 MB",
        "figure 13 (CCA)",
        "differences 5 to 15 points; ratio over 5",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 point; 0.25 of the ratio",
    ),
    "C16": Claim(
        "FSDP on 1,024 GPUs: Ofan's increase falls with model size, 52 times below the others "
        "at 405B; utilisation and max queue explain it",
        "figure 14 (FSDP)",
        "monotone; ratio within a factor 1.25 of 52 (over 20: partly); the others' increases at "
        "405B within a factor 1.5 of those at 7B; utilisation higher and max queue lower with Ofan "
        "(second form, set after the second report)",
        set_by="the paper; margins: us",
        margin=0.001,
        margin_in_words="0.1 points; 1 of the ratio, 0.05 of the factor, a packet of a queue",
    ),
    "C17": Claim(
        "Synchronised pairs on aggregation-edge links match the formula; more with Simple RR "
        "than JSQ; probability of one goes to 1 with k",
        "appendix C",
        "at least 300 seeds; formula inside the 95 % interval at k = 4, 6, 8, else say at which "
        "k not; differ; monotone in k",
        set_by="us",
        least_seeds=300,
        margin=0.02,
        margin_in_words="2 % of the formula",
    ),
    "C18": Claim(
        "RSQ at an edge uplink without internal traffic: Q(m) = sqrt(1 - 2/k) sqrt(2 m / pi)",
        "appendix D",
        "within 15 % over m = 64 to 4,096",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 % of the law",
    ),
    "C19": Claim(
        "Host DR, 1,024 hosts, 4 MB: average queue per layer against the N D/D/1 model: very "
        "close at E>A, a bit pessimistic in the core, the two downlink layers relatively close",
        "appendix E",
        "E>A within 15 %; core: model above measurement; A>E and E>H within 25 % of the model "
        "(second form, set after the second report)",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 % of the model",
    ),
    "C20": Claim(
        "Ofan, same: edge model holds well, others poorer; expected pointers per edge about k/2 "
        "- 1/4, per aggregation at most k - 1",
        "appendix F",
        "E>A within 15 %, and every other layer's error larger than E>A's; counts within 2 %",
        set_by="the paper; margins: us",
        margin=0.01,
        margin_in_words="1 % of the model",
    ),
    "C21": Claim(
        "Max queue of Ofan against Host DR, inter-pod permutation, 30 runs per size: Ofan's "
        "advantage grows with the network (the text says that the ratio grows: print both "
        "ratios)",
        "appendix F",
        "trend over sizes",
        set_by="us",
        least_seeds=30,
        margin=0.05,
        margin_in_words="0.05 of a ratio",
    ),
    "C22": Claim(
        "k = 64: 2,047 pointers per edge, 63 per aggregation; sharing schedules per pod saves "
        "32 times",
        "section 7, appendix F",
        "counted from the plan",
        least_seeds=0,
        margin=0,
    ),
    "C23": Claim(
        "IWRR example: weights {1600,1600,1600,800} -> {2,2,2,1}; order {P3,P2,P4,P1} -> "
        "{P3,P2,P4,P1,P3,P2,P1}",
        "appendix F",
        "exact",
        least_seeds=0,
        margin=0,
    ),
    "C24": Claim(
        "Ofan with reachability only: slightly worse under failures, still better than the "
        "others; first pointer to the shortest queue + unshuffled order: slightly better "
        "without failures",
        "appendix F",
        "differ, in that direction",
        margin=0.001,
    ),
    "C25": Claim(
        "All-to-all at full rate, sudden core link failure: with Ofan whole flows are anchored "
        "to one core and lose every packet until convergence",
        "appendix F",
        "of the flows between pods at full rate at least one loses everything that it sends "
        "from the failure to convergence; with one flow slowed by 5 % fewer do",
        set_by="us",
        margin=0.001,
        margin_in_words="0.1 % of the flows",
    ),
    "C26": Claim(
        "With failures Ofan and Host DR keep their advantage",
        "section 6.2",
        "differ from all others, G = 0",
    ),
    "C27": Claim(
        "The gap between packet and coarser schemes only grows under failures",
        "section 5.2",
        "the gap at 1 % failures and G = ∞ is not below C02's (the sentence is about failures "
        "before convergence); G = 0 printed beside",
        set_by="us",
        margin=0.1,
    ),
    "C28": Claim(
        "Large permutation messages tolerate a G as long as all-to-all's",
        "section 5.2",
        "messages as long as the all-to-all: G = 10 and G = 20 RTTs cost every packet scheme but "
        "Host Pkt AR at most 0.5 points more than they cost in the all-to-all, seed by seed (third "
        "form, set after the second report; both earlier ones, with 16 MB, beside)",
        set_by="us",
        margin=0.005,
    ),
    "C29": Claim(
        "An edge has no internal traffic with probability >= 1 - (k - 2)/(k^2 - 2)",
        "appendix D",
        "Monte Carlo at k = 4, 8, 16",
        least_seeds=0,
        margin=0,
    ),
    "C30": Claim(
        "Consolidation saves at least k^2 / (4 (k - 1)) pointers' worth of flows at the "
        "destination aggregation",
        "appendix F",
        "counted flow by flow from a random permutation's plan, 20 seeds; the mean saving is "
        "not below the formula",
        set_by="us",
        least_seeds=20,
        margin=0.05,
        margin_in_words="0.05 of a ratio",
    ),
    "C31": Claim(
        "The load-balancing invariant: from any source switch, equal rates over all southbound "
        "links to a destination switch",
        "appendix F",
        "counters of a long run, P4 and sim",
        set_by="us",
        least_seeds=0,
        margin=0,
    ),
}


def combined(verdicts: Sequence[Verdict]) -> Outcome:
    """Return the outcome of several verdicts on one claim.

    Those of a changed criterion do not count.
    """
    # A criterion that was changed after looking explains, but cannot make a claim hold.
    outcomes = {verdict.verdict for verdict in verdicts if not verdict.criterion}
    if not outcomes or OPEN in outcomes:
        return OPEN

    if FEW in outcomes:
        return FEW

    # Figures that disagree have each seen a part of the claim.
    return outcomes.pop() if len(outcomes) == 1 else PARTLY


def sure(verdict: Verdict, claims: Mapping[str, Claim], is_look: bool = False) -> Verdict:
    """Return a verdict, or "too few seeds" below the least number of seeds of its claim.

    A mere look (`--quick`) decides nothing by runs: it has other fabrics, too.
    """
    least = claims[verdict.claim].least_seeds
    if verdict.verdict == OPEN or verdict.seeds is None:
        return verdict

    if verdict.seeds >= least and not is_look:
        return verdict

    return replace(verdict, verdict=FEW)


def decide(checks: Sequence[bool | None]) -> Outcome:
    """Return holds if all of a claim's checks hold, partly if some do.

    None is a check that its interval does not decide: with more seeds it might come out either way.
    """
    # A check that holds beside a check that does not is "partly", however the undecided come out.
    if True in checks and False in checks:
        return PARTLY

    if None in checks:
        return FEW

    return HOLDS if all(checks) else FAILS
