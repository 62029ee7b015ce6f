"""Which label rule a flow has."""

from fattree.experiment.model import Scenario
from tests.naive.labels import Draws, Fixed, Fresh, LabelRule, Plb, Reps, Watch
from tests.naive.labels_since import Bitmap, Mrc
from tests.naive.schemes import SCHEMES
from tests.naive.transport import Recovery


def label_rule(scenario: Scenario, flow: int, sender: Recovery) -> LabelRule:
    """Return the rule of a flow, as the scheme wants it."""
    draws = Draws(scenario.seed, flow)
    watch = Watch(sender.memory, sender.timer)
    match SCHEMES[scenario.policy].labels:
        case "fixed":
            return Fixed(draws)
        case "fresh":
            return Fresh(draws)
        case "plb":
            return Plb(scenario, draws, sender.timer, sender.pacer.gap_ps)
        case "reps":
            return Reps(scenario, draws, watch)
        case "bitmap":
            return Bitmap(draws, watch)
        case "mrc":
            return Mrc(scenario, draws, watch)
