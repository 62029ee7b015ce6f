"""A controller that dies between any two messages: the switches go on forwarding, and the next one
repairs the difference.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller.entries import Entries
from controller.fabric_controller import FabricController, LinkChange
from controller.fleet import Access, Fleet
from controller.session import InProcess
from emulation.programs.switch_program import built_in, size_of
from emulation.virtual.control import SwitchDraws
from fattree.experiment.model import Fabric, Scenario
from fattree.shape.addressing import device_id, host_ip, host_mac
from fattree.shape.topology import FatTree
from hostagent.packets import DataFrames, Ends
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

TREE = FatTree(4)
EDGE_LINK, CORE_LINK = 0, 16
Frame = tuple[int, int, bytes]


class CrashError(Exception):
    """The controller is killed."""


@dataclass
class Wire:
    """The state that all transports of a controller share: how many writes it lives for, and a
    function to call after each.
    """

    left: int = 10**9
    after_each: Callable[[], None] = lambda: None
    writes: int = 0
    updates: int = 0
    closed: int = 0


@dataclass
class Mortal:
    """A transport of a controller that dies when its wire's writes are used up."""

    inner: InProcess
    wire: Wire

    def write(self, request: Any) -> None:
        if self.wire.left == 0:
            raise CrashError
        self.wire.left -= 1
        self.wire.writes += 1
        self.wire.updates += len(request.updates)
        self.inner.write(request)
        self.wire.after_each()

    def close(self) -> None:
        self.wire.closed += 1
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class World:
    """Switches that outlive their controllers."""

    policy: str
    switches: list[Switch] = field(default_factory=list)
    services: list[P4RuntimeService] = field(default_factory=list)
    election_id: int = 0

    def __post_init__(self) -> None:
        for number in range(TREE.switches):
            self.switches.append(
                Switch(device_id(number), lambda: 0, SwitchDraws(1, number), TREE.ports(number))
            )
            self.services.append(P4RuntimeService(self.switches[-1]))

    def controller(
        self, failed: Iterable[int] = (), wire: Wire | None = None
    ) -> tuple[FabricController, Fleet]:
        """Start a controller, which takes over from the one before.

        Its first plan is not sent yet.
        """
        scenario, wire = Scenario(policy=self.policy, fabric=Fabric(k=4)), wire or Wire()
        program = built_in(scenario.scheme.program, size_of(TREE))
        brain = FabricController(scenario, program.pipeline, failed)
        self.election_id += 1
        transports = [Mortal(InProcess(service, StatusError), wire) for service in self.services]
        access = Access(
            program.bmv2_json,
            program.pipeline,
            transports.__getitem__,
            election_id=self.election_id,
        )
        fleet = Fleet(brain, access, writers=1)
        fleet.open()
        return brain, fleet

    def installed(self) -> "World":
        """Install the plan of the whole fabric."""
        brain, fleet = self.controller()
        fleet.write(brain.start())
        return self

    def travels(self, source: int, destination: int, dead: frozenset[int]) -> str:
        """Send a packet between two hosts.

        Return whether it is `delivered`, `dead` (on a dead link) or `dropped`.
        """
        ends = Ends(
            *(host_mac(TREE, h) for h in (source, destination)),
            *(host_ip(TREE, h) for h in (source, destination)),
        )
        switch, port = TREE.access(source)
        frame = DataFrames(ends, 7, 256).frame(source * 977 + destination, 0)
        for _ in range(6):
            pending = self.switches[switch].ingress(port, frame)
            if not pending:
                return "dropped"
            (sent,) = self.switches[switch].egress(pending[0])
            far = TREE.neighbour(switch, sent.port)
            if far is None:
                arrived = (
                    TREE.edge_of_host(destination) == switch
                    and TREE.access(destination).port == sent.port
                )
                return "delivered" if arrived else "astray"
            if any(
                {(switch, sent.port), (*far,)} <= {*map(tuple, TREE.link_ends(link))}
                for link in dead
            ):
                return "dead"
            (switch, port), frame = far, sent.frame
        return "looped"

    def fates(self, dead: frozenset[int] = frozenset()) -> set[str]:
        """Send packets between all edges; return their fates."""
        edges = range(0, TREE.hosts, TREE.hosts_per_edge)
        return {
            self.travels(source, target, dead)
            for source in edges
            for target in edges
            if source != target
        }


def described(entries: Entries) -> dict[Any, Any]:
    """Return a switch's behaviour, whatever the ids of its schedules: routes with the ports that
    they walk.
    """
    slots: dict[Any, dict[Any, Any]] = {}
    for (table, key), (_, arguments) in entries.items():
        if table in ("schedule", "uplinks_of"):
            slots.setdefault(key[0], {})[table, key[1:]] = arguments
    rest: dict[Any, Any] = {
        entry_key: call
        for entry_key, call in entries.items()
        if entry_key[0] not in ("schedule", "uplinks_of")
    }
    for entry_key, (action, arguments) in rest.items():
        if action == "to_group":
            rest[entry_key] = (
                action,
                (arguments[0], *arguments[2:], *sorted(slots[arguments[1]].items())),
            )
    return rest


def read(fleet: Fleet) -> list[Entries]:
    """Return the entries that all switches hold."""
    return [
        {(e.table, e.key): (e.action, e.arguments) for e in session.read()}
        for session in fleet.sessions.values()
    ]


CHANGES = {
    "a core link fails": (frozenset[int](), frozenset({CORE_LINK})),
    "an edge link is back": (frozenset({EDGE_LINK}), frozenset[int]()),
    "an agg gets its cores back, another loses one": (frozenset({16, 17}), frozenset({20})),
}


def in_quick_and_slow(quick: tuple[str, str]) -> pytest.MarkDecorator:
    """Return a decorator: every change, and every kind of schedule, of which one combination is
    quick.
    """
    cases = [("ofan", change) for change in CHANGES] + [
        (policy, "a core link fails") for policy in ("switch_pkt", "jsq")
    ]
    marked = [
        pytest.param(*case, marks=() if case == quick else pytest.mark.slow) for case in cases
    ]
    return pytest.mark.parametrize(("policy", "change"), marked)


@in_quick_and_slow(("ofan", "an edge link is back"))
def test_whenever_it_dies_the_next_one_sends_exactly_the_rest(policy: str, change: str) -> None:
    before, after = CHANGES[change]
    move, back = (
        LinkChange(after - before, before - after),
        LinkChange(before - after, after - before),
    )
    world, wire = World(policy).installed(), Wire()
    brain, fleet = world.controller(before, wire)
    fleet.write(brain.start())
    wire.writes = wire.updates = 0
    fleet.write(brain.on_event(0, move))
    total, updates, expected = (
        wire.writes,
        wire.updates,
        [described(entries) for entries in read(fleet)],
    )
    assert total > 4
    fleet.write(brain.on_event(0, back))
    for lived in range(total):
        wire = Wire()
        brain, fleet = world.controller(before, wire)
        fleet.write(brain.start())
        assert wire.writes == 0, "the one before has left everything in place"
        wire.left = lived
        with pytest.raises(CrashError):
            fleet.write(brain.on_event(0, move))
        fleet.close()
        assert world.fates(after | before) <= {"delivered", "dead"}
        again = Wire()
        successor, fleet = world.controller(after, again)
        fleet.write(successor.start())
        held = read(fleet)
        assert held == [dict(successor.entries(switch)) for switch in range(TREE.switches)]
        assert [described(entries) for entries in held] == expected
        assert wire.updates + again.updates == updates, f"killed after {lived} of {total} messages"
        fleet.write(successor.on_event(0, back))
        fleet.close()


@in_quick_and_slow(("ofan", "an agg gets its cores back, another loses one"))
def test_traffic_that_has_a_path_never_stops(policy: str, change: str) -> None:
    before, after = CHANGES[change]
    world = World(policy).installed()
    wire = Wire()
    brain, fleet = world.controller(before, wire)
    fleet.write(brain.start())
    fates: list[set[str]] = []
    wire.after_each = lambda: fates.append(world.fates(after))
    fleet.write(brain.on_event(0, LinkChange(down=after - before, up=before - after)))
    allowed = {"delivered", "dead"} if after else {"delivered"}
    assert len(fates) > 4 and all(seen <= allowed for seen in fates)
    assert world.fates(after) == {"delivered"}


def test_a_controller_that_finds_everything_in_place_sends_nothing() -> None:
    world, wire = World("ofan").installed(), Wire()
    brain, fleet = world.controller(wire=wire)
    fleet.write(brain.start())
    assert wire.writes == 0


def test_a_switch_that_has_lost_everything_gets_it_again_and_nobody_else_anything() -> None:
    world, before = World("ofan").installed(), Wire()
    brain, fleet = world.controller(wire=before)
    brain.start()
    expected = dict(brain.entries(3))
    world.switches[3] = Switch(device_id(3), lambda: 0, SwitchDraws(1, 3), TREE.ports(3))
    world.services[3] = P4RuntimeService(world.switches[3])
    wire = Wire()
    fleet.access = Access(  # the transport of the restarted switch
        fleet.access.device_config,
        fleet.access.pipeline,
        lambda switch: Mortal(InProcess(world.services[switch], StatusError), wire),
        election_id=world.election_id,
    )
    fleet.sessions[3].close()
    back: dict[int, int] = {}
    while not back:
        back = fleet.poll(0)
    assert back == {3: len(expected)}
    assert read(fleet)[3] == expected and wire.updates == len(expected)
    assert before.closed == 1, "the transport of the switch that was"


def test_switches_are_claimed_again_when_nobody_is_in_charge_of_them() -> None:
    world = World("ofan").installed()
    brain, fleet = world.controller()
    _, rival = world.controller()
    assert fleet.poll(0) == {} and len(fleet.lost) == TREE.switches

    assert fleet.poll(0) == {}, "two controllers would outbid each other"
    rival.close()
    brain.start()
    back: set[int] = set()
    while fleet.lost:
        back |= fleet.poll(0).keys()
    assert back == set(range(TREE.switches))
    assert all(session.is_primary for session in fleet.sessions.values())
