"""Which label rule a flow has."""

from fattree.experiment.model import Scenario
from tests.naive.labels import Draws, Fixed, Fresh, LabelRule, Plb, Reps
from tests.naive.labels_since import Bitmap, Mrc
from tests.naive.schemes import SCHEMES
from tests.naive.transport import Recovery


def label_rule(scenario: Scenario, flow: int, sender: Recovery) -> LabelRule:
    """Return the rule of a flow, as the scheme wants it."""
    draws = Draws(scenario.seed, flow)
    match SCHEMES[scenario.policy].labels:
        case "fixed":
            return Fixed(draws)
        case "fresh":
            return Fresh(draws)
        case "plb":
            return Plb(scenario, draws, sender.timer, sender.pacer.gap_ps)
        case "reps":
            return Reps(scenario, draws)
        case "bitmap":
            return Bitmap(draws)
        case "mrc":
            return Mrc(scenario, draws)


def lasts(scenario: Scenario) -> bool:
    """Tell whether all messages from one host to another have one rule, that of the first."""
    remembers = SCHEMES[scenario.policy].labels in ("reps", "bitmap", "mrc")
    return remembers and scenario.load_balancer.connections == "pair"
