"""Local repair at a switch: its own agent leaves dead uplinks before the controller's routes come.

The agent is between the session and the switch. It keeps the entries that the controller has
written, and writes them to the switch without the dead uplinks (the rule of `routes.local_repair`,
here on table entries). It knows its own switch alone. A switch with built-in repair changes a
schedule in one step; through tables it takes several, which virtual time makes one.

The rule has two forms that share no step: the simulator filters the arrays of the whole fabric at
once, without weights and ids; an agent filters the rows of one switch. A parity test compares them.
"""

from collections.abc import Iterable, Iterator

from controller.entries import Call, Change, Entries, Key, Kind
from controller.reconcile import updates
from controller.session import Session

Place = tuple[str, Key]


class LocalAgent:
    """Writes the controller's entries to one switch, without its dead uplinks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanted: dict[Place, Call] = {}
        self._shown: Entries = {}
        self._dead: frozenset[int] = frozenset()

    def write(self, changes: Iterable[Change]) -> None:
        """Write a batch of the controller; raises the errors of `Session.write`."""
        for kind, entry in changes:
            # The switch would refuse a change of an entry that is not there.
            key = entry.table, entry.key
            if kind is Kind.DELETE:
                del self._wanted[key]
            else:
                self._wanted[key] = entry.action, entry.arguments

        self._show()

    def set_port(self, port: int, up: bool) -> None:
        """Take note that a port of the switch has gone down or come back."""
        self._dead = self._dead - {port} if up else self._dead | {port}
        self._show()

    def _show(self) -> None:
        # Under their own ids, unlike the controller's schedules: it must find them again.
        entries = repaired(self._wanted, self._dead)
        for part in updates(self._shown, entries):
            self._session.write(part.changes)

        self._shown = entries


def repaired(entries: Entries, dead: frozenset[int]) -> dict[Place, Call]:
    """Return entries without dead ports: shorter schedules, and no route that has no slot left."""
    if not dead:
        return dict(entries)

    slots = dict(_slots(entries, dead))
    weights = dict(_weights(entries, dead))

    # A program that compares queues may have weights only; where it has slots, they count.
    lengths = {schedule: sum(arguments[1:]) for schedule, (_, arguments) in weights.items()}
    lengths |= {schedule: len(ports) for schedule, ports in slots.items()}
    alive: dict[Place, Call] = {}

    for (table, key), call in entries.items():
        match table:
            case "schedule":
                pass
            case "uplinks_of" if isinstance(key[0], int):
                alive[table, key] = weights[key[0]]
            case "routes" if call[0] == "to_group":
                if kept := _shortened(call, lengths[call[1][1]]):
                    alive[table, key] = kept
            case _:
                alive[table, key] = call

    # Slots get new numbers without gaps, as pointers count them.
    for schedule, ports in slots.items():
        alive.update(
            {
                ("schedule", (schedule, slot)): ("take_port", (port,))
                for slot, port in enumerate(ports)
            }
        )

    return alive


def _slots(entries: Entries, dead: frozenset[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the ports of every schedule that are alive, in order."""
    ports: dict[int, list[tuple[int, int]]] = {}
    for (table, key), (_, arguments) in entries.items():
        if table == "schedule" and isinstance(key[0], int) and isinstance(key[1], int):
            ports.setdefault(key[0], []).append((key[1], arguments[0]))

    for schedule, rows in ports.items():
        yield schedule, [port for _, port in sorted(rows) if port not in dead]


def _weights(entries: Entries, dead: frozenset[int]) -> Iterator[tuple[int, Call]]:
    """Yield the weights of every schedule's uplinks, 0 for dead uplinks."""
    for (table, key), (action, (first, *weights)) in (
        (match, call) for match, call in entries.items() if match[0] == "uplinks_of"
    ):
        assert table and isinstance(key[0], int)
        # `first` is the port of uplink 0, so an uplink's weight stays at its own place.
        kept = [0 if first + uplink in dead else weight for uplink, weight in enumerate(weights)]
        yield key[0], (action, (first, *kept))


def _shortened(route: Call, length: int) -> Call | None:
    """Return a route to a schedule of `length` slots; a start beyond its end is 0.

    None where nothing is left.
    """
    action, (group, schedule, _, *starts) = route
    return (
        (action, (group, schedule, length, *(start if start < length else 0 for start in starts)))
        if length
        else None
    )
