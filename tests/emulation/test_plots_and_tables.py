"""Pictures and tables show what the runs have measured, with labels and units."""

from io import StringIO

import pytest
from rich.console import Console

from emulation.outcome import Outcome
from emulation.plots import demo_figure, draw_loads, experiment_figures, layers_of
from emulation.results import record
from emulation.tables import results_table
from emulation.virtual_fabric import VirtualFabric
from fabric.experiment import Collective, Fabric, Failures, LinkEvent, Scenario
