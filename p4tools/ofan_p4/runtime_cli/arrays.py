"""Commands for counters, meters and registers."""

from __future__ import annotations

from ofan_p4.runtime_cli import values
from ofan_p4.runtime_cli.names import find
from ofan_p4.runtime_cli.session import Lines, Session, command
from ofan_p4.softswitch.daemon.thrift import messages as m


@command("counter_read <counter> <index>")
def counter_read(session: Session, tokens: list[str]) -> Lines:
    """Print a counter; of a direct one the index is an entry."""
    counter = find(session.names.counters, tokens[0], "counter")
    index = values.i32(tokens[1], "an index")
    if counter.is_direct:
        table = session.names.table_of_counter[counter.name]
        yield f"this is the direct counter for table {table}"
        value = session.standard("bm_mt_read_counter", table_name=table, entry_handle=index)
    else:
        value = session.standard("bm_counter_read", counter_name=counter.name, index=index)

    yield f"{tokens[0]}[{index}]= ({value.bytes} bytes, {value.packets} packets)"


@command("counter_write <counter> <index> <packets> <bytes>")
def counter_write(session: Session, tokens: list[str]) -> Lines:
    """Set a counter."""
    counter = find(session.names.counters, tokens[0], "counter")
    index = values.i32(tokens[1], "an index")
    packets, octets = (values.whole(word, "a count") for word in tokens[2:])
    value = m.CounterValue(bytes=octets, packets=packets)
    if counter.is_direct:
        table = session.names.table_of_counter[counter.name]
        session.standard("bm_mt_write_counter", table_name=table, entry_handle=index, value=value)
    else:
        session.standard("bm_counter_write", counter_name=counter.name, index=index, value=value)

    yield f"{tokens[0]}[{index}] has been updated"


@command("counter_reset <counter>")
def counter_reset(session: Session, tokens: list[str]) -> None:
    """Set all cells of a counter to 0."""
    counter = find(session.names.counters, tokens[0], "counter")
    if counter.is_direct:
        table = session.names.table_of_counter[counter.name]
        session.standard("bm_mt_reset_counters", table_name=table)
    else:
        session.standard("bm_counter_reset_all", counter_name=counter.name)


@command("meter_array_set_rates <meter> <rate:burst> <rate:burst>")
def meter_array_set_rates(session: Session, tokens: list[str]) -> None:
    """Set the rates of all cells of a meter, of a direct one those of all entries there are."""
    meter = find(session.names.meters, tokens[0], "meter")
    session.standard(
        "bm_meter_array_set_rates", meter_array_name=meter.name, rates=values.rates(tokens[1:])
    )


@command("meter_set_rates <meter> <index> <rate:burst> <rate:burst>")
def meter_set_rates(session: Session, tokens: list[str]) -> None:
    """Set rates in units per microsecond and bursts; of a direct meter the index is an entry."""
    meter = find(session.names.meters, tokens[0], "meter")
    index, rates = values.i32(tokens[1], "an index"), values.rates(tokens[2:])
    table = session.names.table_of_meter.get(meter.name)
    if table is not None:
        session.standard("bm_mt_set_meter_rates", table_name=table, entry_handle=index, rates=rates)
    else:
        session.standard(
            "bm_meter_set_rates", meter_array_name=meter.name, index=index, rates=rates
        )


@command("meter_get_rates <meter> <index>")
def meter_get_rates(session: Session, tokens: list[str]) -> Lines:
    """Print the rates of a meter."""
    meter = find(session.names.meters, tokens[0], "meter")
    index = values.i32(tokens[1], "an index")
    table = session.names.table_of_meter.get(meter.name)
    if table is not None:
        rates = session.standard("bm_mt_get_meter_rates", table_name=table, entry_handle=index)
    else:
        rates = session.standard("bm_meter_get_rates", meter_array_name=meter.name, index=index)

    for i, rate in enumerate(rates):
        yield f"{i}: info rate = {rate.units_per_micros}, burst size = {rate.burst_size}"


@command("register_read <register> [index]")
def register_read(session: Session, tokens: list[str]) -> Lines:
    """Print a cell of a register, or all."""
    register = find(session.names.registers, tokens[0], "register")
    if len(tokens) == 1:
        cells = session.standard("bm_register_read_all", register_array_name=register.name)
        yield f"{tokens[0]}= {', '.join(map(str, cells))}"
        return

    index = values.i32(tokens[1], "an index")
    value = session.standard("bm_register_read", register_array_name=register.name, idx=index)
    yield f"{tokens[0]}[{index}]= {value}"


@command("register_write <register> <index> <value>")
def register_write(session: Session, tokens: list[str]) -> None:
    """Set a cell of a register."""
    register = find(session.names.registers, tokens[0], "register")
    value = values.whole(tokens[2], "a value")
    session.standard(
        "bm_register_write",
        register_array_name=register.name,
        index=values.i32(tokens[1], "an index"),
        # The API's numbers are signed; both ways to write the upper half are meant alike.
        value=value - (1 << 64) if 1 << 63 <= value < 1 << 64 else value,
    )


@command("register_reset <register>")
def register_reset(session: Session, tokens: list[str]) -> None:
    """Set all cells of a register to 0."""
    register = find(session.names.registers, tokens[0], "register")
    session.standard("bm_register_reset", register_array_name=register.name)
