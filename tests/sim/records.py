"""Records that are made up, for stores."""

from fattree.experiment.model import Scenario
from fattree.records.record import Record, described


def record_of(scenario: Scenario, cct_ps: int = 11) -> Record:
    """Return a record of a scenario as a run would make it."""
    layers = (1.0, 2.0, 3.0, 4.0, 5.0)
    counters = dict.fromkeys(
        ("dropped", "marked", "lost_to_failure", "transmissions", "packet_hops", "redraws"), 0
    )
    queues = {"max_queue_bytes": 5, "max_queue_packets": 1.0, "mean_queue_packets": 0.5}
    by_layer = {
        "max_queue_layers": layers,
        "mean_queue_layers": layers,
        "utilisation_layers": layers,
    }
    result = {
        "cct_ps": cct_ps,
        "bound_ps": 10,
        "increase": cct_ps / 10 - 1,
        "cpu_s": 0.1,
        "max_rss_bytes": 1,
    }

    return Record.model_validate(
        {**described(scenario, "sim", 4096, 1), **counters, **queues, **by_layer, **result}
    )
