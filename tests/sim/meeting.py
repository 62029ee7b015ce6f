"""A run for workers of a cluster, which import it by name: none begins before both are at work."""

import os
import time
from pathlib import Path

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from sim.runs import engine

WORKERS = 2
PATIENCE_S = 300


def run_together(folder: Path, scenario: Scenario) -> Record:
    """Sign in with this process's number, wait for another worker, and run the scenario."""
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + PATIENCE_S
    while len(list(folder.iterdir())) < WORKERS:
        assert time.monotonic() < deadline, "the other worker does nothing"
        time.sleep(0.05)
    return engine.run(scenario).record
