"""A directed link: its rate, when it is down, and which packets it loses by chance."""

from bisect import bisect_right
from collections.abc import Iterable

from fattree.draws import Stream, component, mix
from fattree.experiment.model import Scenario
from fattree.routes.failures import Timeline, loss_thresholds, outages
from fattree.routes.slow_links import Pace, paces

# Later than all times, and one more still fits into 64 bits.
ALWAYS = 2**62


class Wire:
    """A directed link: its outages, and of 2**32 draws how many lose their packet.

    `number` names its stream of draws, as the simulator numbers links (`sim.kernels.state`).
    `paces` are the shares of its rate that it carries, where it is slow.
    """

    __slots__ = ("_count", "_outages", "_seed", "_stream", "_threshold", "paces")

    def __init__(
        self,
        outages: Iterable[tuple[int, int]] = (),
        threshold: int = 0,
        seed: int = 0,
        number: int = 0,
        paces: tuple[Pace, ...] = (),
    ) -> None:
        self.paces = paces
        self._outages = sorted(outages)
        self._threshold = threshold
        self._seed = seed
        self._stream = component(Stream.LOSS, number)
        self._count = 0

    def loses_next(self) -> bool:
        """Return whether the next packet is lost by chance; each packet is asked for once."""
        if not self._threshold:
            return False

        self._count += 1
        return bool(mix(self._seed, self._stream, self._count - 1) < self._threshold)

    def with_draws_of(self, number: int) -> "Wire":
        """Return a link that loses as large a share of its packets, by another stream of draws."""
        return Wire((), self._threshold, self._seed, number=number)

    def is_down(self, start_ps: int) -> bool:
        """Return whether a packet that starts now is lost."""
        # The last outage that began at or before the start: at the very instant of a failure a
        # packet is lost, at that of a repair it is not.
        index = bisect_right(self._outages, (start_ps, ALWAYS + 1))
        return index > 0 and start_ps < self._outages[index - 1][1]


class Wires:
    """The directed links of a scenario, each with its foreseen outages and losses."""

    def __init__(self, scenario: Scenario, events: Timeline) -> None:
        self._seed = scenario.seed
        self._tree = scenario.tree
        self._of_links = outages(events.changes)
        self._of_hosts: dict[int, list[tuple[int, int]]] = {}
        for host, down_ps, up_ps in events.hosts:
            self._of_hosts.setdefault(host, []).append((down_ps, up_ps))

        self._losses, self._host_losses = loss_thresholds(scenario)
        self._paces = paces(scenario)

    def behind(self, switch: int, port: int) -> Wire:
        """Return the link that a switch's port sends on."""
        number = self._tree.first_port(switch) + port - 1
        link = self._tree.link_at(switch, port)
        if link is None:
            return self._of_host(self._tree.host_at(switch, port), number, is_up=False)

        is_up = port > self._tree.downlinks(switch)
        return Wire(
            self._of_links.get(link, ()),
            self._losses.get(link, 0),
            self._seed,
            number=number,
            paces=self._paces.of_links.get((link, is_up), ()),
        )

    def frames_behind(self, switch: int, port: int) -> Wire:
        """Return the draws of control frames on the link that a switch's port sends on."""
        wire = self.behind(switch, port)
        links = self._tree.first_port(self._tree.switches) + self._tree.hosts
        return wire.with_draws_of(links + self._tree.first_port(switch) + port - 1)

    def of_host(self, host: int) -> Wire:
        """Return the link that a host sends on."""
        return self._of_host(host, self._tree.first_port(self._tree.switches) + host, is_up=True)

    def _of_host(self, host: int, number: int, is_up: bool) -> Wire:
        return Wire(
            self._of_hosts.get(host, ()),
            self._host_losses.get(host, 0),
            self._seed,
            number=number,
            paces=self._paces.of_hosts.get((host, is_up), ()),
        )
