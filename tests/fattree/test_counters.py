"""The table of counters: who keeps them, and where they are found again."""

from types import SimpleNamespace

import pytest
from pydantic import ValidationError

import sim
from emulation.outcomes.folder import flows_of, ports_of, record
from fattree.counters import PORT_COUNTERS, SENDER_COUNTERS, Counts, kept, total
from fattree.experiment.model import Collective, Fabric, Scenario
from fattree.records.record import Record
from hostagent.transports.state import SENDER
from sim.kernels.records import LEDGER
from tests.python_network.fabric import PythonFabric

INCAST = Collective(
    matrix="pairs", pairs=tuple((host, 0) for host in range(1, 16)), message_bytes=1 << 17
)
COUNTED = dict.fromkeys(Counts.model_fields, 1)


def test_whoever_keeps_a_counter_keeps_it_for_the_run() -> None:
    assert {*SENDER_COUNTERS, *PORT_COUNTERS} < {*Counts.model_fields}
    assert not {*SENDER_COUNTERS} & {*PORT_COUNTERS}


def test_hosts_and_kernels_have_a_place_for_each() -> None:
    assert {*SENDER_COUNTERS} <= {*(SENDER.fields or ())}
    assert {*PORT_COUNTERS} <= {*(LEDGER.fields or ())}


def test_records_have_them_in_the_order_of_the_table() -> None:
    columns = list(Record.model_fields)
    first = columns.index("dropped")
    assert columns[first : first + len(COUNTED)] == list(COUNTED)


def test_a_counter_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(ValidationError, match="naps"):
        Counts(**COUNTED, naps=1)  # type: ignore[call-arg]


def test_totals_are_by_name() -> None:
    keepers = [SimpleNamespace(one=1, other=20), SimpleNamespace(one=2, other=10)]
    assert kept(("other", "one"), keepers[0]) == {"other": 20, "one": 1}
    assert total(("one", "other"), keepers) == {"one": 3, "other": 30}
    assert total(("one",), []) == {"one": 0}


def test_a_run_has_all_that_its_flows_and_ports_have_counted() -> None:
    scenario = Scenario(
        policy="host_pkt_ar", fabric=Fabric(k=4, queue_bytes=30_000), collective=INCAST
    )
    outcome, result = PythonFabric(scenario).run(), sim.run(scenario)
    senders, ports = total(SENDER_COUNTERS, outcome.flows), total(PORT_COUNTERS, outcome.ports)
    assert senders == {name: getattr(result, name).sum() for name in SENDER_COUNTERS}
    assert ports == {name: getattr(result.ports, name).sum() for name in PORT_COUNTERS}
    assert senders["freezes"] > 0 < ports["dropped"] and ports["marked"] > 0

    row = record(outcome, "virtual")
    assert kept(SENDER_COUNTERS, row) | kept(PORT_COUNTERS, row) == senders | ports
    assert flows_of(outcome)["transmissions"].sum() == senders["transmissions"]
    assert {name: ports_of(outcome)[name].sum() for name in PORT_COUNTERS} == ports
