"""A held Mininet network, seen and commanded through its control socket."""

from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from emulation.held.client import ask
from emulation.held.messages import (
    ENDED,
    GetState,
    HeldState,
    Request,
    SetLink,
    SetRate,
    StartTraffic,
)
from emulation.live.model import (
    Header,
    Observer,
    Reading,
    Snapshot,
)
from emulation.live.source import LiveError
from emulation.mininet.run_folder import RUN_FOLDER
from emulation.outcomes.reading import FlowReading, PortReading
from fattree.demand import traffic
from fattree.experiment.model import Scenario
from fattree.units import PS_PER_SECOND
from hostagent.transports.state import NEVER

WINDOW_SECONDS = 1.0
LEAST_PACKETS = 8
AnswerT = TypeVar("AnswerT")


class HeldSource:
    """Asks the held network for its counters whenever it is polled.

    Raises ControlError where there is none.
    """

    def __init__(self, run_folder: Path = RUN_FOLDER) -> None:
        self._run_folder = run_folder
        self._scenario: dict[str, Any] = {}
        self._watch(self._ask(GetState()).scenario)

    def _ask(self, request: Request[AnswerT]) -> AnswerT:
        return ask(request, self._run_folder)

    def _watch(self, scenario: dict[str, Any]) -> None:
        self._scenario = scenario
        self.scenario = Scenario.model_validate(scenario)
        self.policies = {self.scenario.balancer: self.scenario.balancer_label}
        self._flows = traffic.flows(self.scenario)
        window_ps = max(WINDOW_SECONDS * PS_PER_SECOND, LEAST_PACKETS * self.scenario.slot_ps)
        self._observer = Observer(self.scenario, round(window_ps))

    def poll(self) -> Snapshot:
        """Ask for everything; raises ControlError where the network has gone."""
        state = self._ask(GetState())
        # Traffic with messages of another size is another scenario: flows and loads begin anew.
        if state.scenario != self._scenario:
            self._watch(state.scenario)

        return self._observer.snapshot(self._header(state), self._reading(state))

    def _header(self, state: HeldState) -> Header:
        scenario = self.scenario
        is_done = bool(state.flows) and all(done_ps != NEVER for _, _, _, done_ps in state.flows)
        is_cut_short = state.last.startswith(ENDED) and not state.is_running

        return Header(
            name=scenario.name,
            network=f"mininet ({state.switch})",
            policy=scenario.balancer,
            label=scenario.balancer_label,
            seed=scenario.seed,
            tree=scenario.tree,
            state="running" if state.is_running else "complete" if is_done else "idle",
            note=state.last if is_cut_short else "",
            converges=state.converges,
        )

    def _reading(self, state: HeldState) -> Reading:
        ports = np.moveaxis(np.array(state.ports, dtype=np.int64), 2, 0)
        return Reading(
            state.now_ps,
            ports=PortReading(*ports),
            flows=self._flow_reading(state),
            failed=frozenset(state.failed),
            slow=dict(state.slow),
            changes=state.changes,
        )

    def _flow_reading(self, state: HeldState) -> FlowReading:
        # A flow that no agent has reported has not begun.
        flows = np.full((3, len(self._flows)), NEVER, dtype=np.int64)
        flows[0] = 0
        for flow, acked, start_ps, done_ps in state.flows:
            # An agent's last report may be of a collective with more flows.
            if flow < len(self._flows):
                flows[:, flow] = acked, start_ps, done_ps

        return FlowReading(*flows)

    def set_link(self, name: str, up: bool) -> None:
        """Fail or mend a link now; the new schedules come later."""
        self._ask(SetLink(name, up, wait=False))

    def set_rate(self, name: str, rate: float) -> None:
        """Slow a link down, or give it its rate back; the new schedules come later."""
        self._ask(SetRate(name, rate, wait=False))

    def start(self, policy: str) -> None:
        """Run the collective once more; a held network has one load balancer."""
        if policy not in self.policies:
            raise LiveError(
                f"this network runs {self.scenario.balancer}; hold another one for {policy}"
            )

        self._ask(StartTraffic())

    def set_pace(self, factor: float, paused: bool) -> None:
        """Refuse: real packets cannot be slowed down."""
        raise LiveError("Mininet runs in real time")
