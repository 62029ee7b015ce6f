"""CCT as messages grow (section 7.1), and why Host Pkt AR freezes at large ones."""

import itertools
from collections.abc import Mapping
from typing import Any

import polars as pl

from fattree.experiment import Scenario
from sim.report import schemes, style
from sim.report.claims import decide
from sim.report.figure import PARTLY, Data, Figure, Preset, Verdict, grid
from sim.report.schemes import BEST, KIB, MIB, mean_of, names, percent, where

ATA = "all-to-all"
PERMUTATION = "permutation"
PATIENT = "timer of 3 RTTs"
ATA_SIZES = (16 * KIB, 64 * KIB, 256 * KIB, MIB)
PERMUTATION_SIZES = tuple(4**power * 16 * KIB for power in range(7))  # 16 KB to 64 MB
FREEZING = "host_pkt_ar"
# A label's timer is srtt + 4 rttvar, by default not below one zero-load RTT. Three are what it is
# before the first sample of a round trip.
PATIENCE_RTT = 3
SWITCHED = "switch_pkt_ar"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both matrices with every size, Host Pkt AR also with a timer of three RTTs."""
    ata = schemes.ALL_TO_ALL | {"fabric__k": preset.pick(4, 8, 8)}
    ata_sizes = (*ATA_SIZES, *preset.pick((), (), (2 * MIB, 4 * MIB)))
    sizes = PERMUTATION_SIZES[: preset.pick(6, 7, 7)]
    patient = {"transport__timer_floor_rtt": PATIENCE_RTT}
    seeds = {size: preset.seeds(3, 5 if size > 16 * MIB else 10, 10) for size in sizes}
    runs = grid(
        {"name": ATA, **ata},
        BEST,
        preset.seeds(**schemes.ATA_SEEDS),
        collective__message_bytes=ata_sizes,
    )

    for size in sizes:
        runs += grid(
            {"name": PERMUTATION, **schemes.PERMUTATION},
            BEST,
            seeds[size],
            collective__message_bytes=(size,),
        )
        base = {"name": PATIENT, **schemes.PERMUTATION, **patient}
        runs += grid(base, (FREEZING,), seeds[size], collective__message_bytes=(size,))

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the message size, one panel a matrix; the patient timer is dotted."""
    patient = {ATA: None, PERMUTATION: data.named(PATIENT)}
    return {
        name: _lines(rows, patient[name]) for name, rows in data.parts(ATA, PERMUTATION).items()
    }


def _lines(frame: pl.DataFrame, patient: pl.DataFrame | None) -> Any:
    picture, axes = style.panel(3.6, 3.1)
    style.lines(axes, frame, x="message_bytes", y="increase", policies=BEST, scale=100)
    if patient is not None:
        points = style.estimates(patient, "increase", "message_bytes")
        style.line(
            axes,
            policy=FREEZING,
            points=points,
            scale=100,
            text=f"Host Pkt AR, timer ≥ {PATIENCE_RTT} RTTs",
            linestyle=":",
            markerfacecolor="white",
        )

    sizes = sorted(frame["message_bytes"].unique())
    style.powers_of_two(axes, sizes, [_size(size) for size in sizes])
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("message size")
    axes.set_ylabel("CCT increase over the bound (%)")
    style.legend_above(picture, axes, columns=2)

    return picture


def _size(size: int) -> str:
    return f"{size // MIB} MB" if size >= MIB else f"{size // KIB} KB"


def claims(data: Data) -> list[Verdict]:
    """Decide C12."""
    found = by_size(data.named(PERMUTATION))
    # The permutation decides: it alone reaches the "very large message".
    patient = {size: mean_of(rows, FREEZING) for size, rows in _sizes(data.named(PATIENT))}
    # The paper conjectures that freezing is why; we count it.
    frozen = {
        size: mean_of(rows, FREEZING, "freezes").mean
        for size, rows in _sizes(data.named(PERMUTATION))
    }

    largest = max(found)
    worse = found[largest][FREEZING] > found[MIB][FREEZING]
    counts = ", ".join(f"{_size(size)} {count:.0f}" for size, count in frozen.items())
    patience = ", ".join(
        f"{_size(size)} {percent(value)}" for size, value in patient.items() if size >= MIB
    )
    checks = {
        "the order stays": ordered(found),
        "the gap of Switch Pkt AR to Ofan shrinks from 1 MB on": shrinks(
            {size: row[SWITCHED] - row["ofan"] for size, row in found.items()}
        ),
        "Host Pkt AR freezes at the largest message": worse and frozen[largest] > 0,
    }

    return [
        Verdict(
            "C12",
            verdict=decide(list(checks.values())),
            ours=(
                f"permutation, {names(BEST)}: {_row(found)}; the gap that is judged is Switch "
                "Pkt AR's to Ofan"
            ),
            paper=(
                "order does not change, gaps shrink, Host Pkt AR notably worse at very large "
                "messages"
            ),
            why=_why({text: right for text, right in checks.items() if not right}),
            evidence=(
                f"freezes per run {counts}; "
                f"Host Pkt AR with a timer of at least {PATIENCE_RTT} RTTs: {patience}"
            ),
        ),
        *([] if all(checks.values()) else _changed(found, patient)),
    ]


def _changed(found: Mapping[int, Mapping[str, float]], patient: Mapping[int, Any]) -> list[Verdict]:
    """Return the verdict on order and gaps when labels time out no sooner than after three RTTs."""
    # With the freezing gone it is Host Pkt AR's own gap that should shrink.
    rows = {size: {**row, FREEZING: patient[size].mean} for size, row in found.items()}
    right = [
        ordered(rows),
        shrinks({size: row[FREEZING] - row["ofan"] for size, row in rows.items()}),
    ]

    return [
        Verdict(
            "C12",
            decide(right) if all(right) else PARTLY,
            f"with that timer: {_row(rows)}",
            criterion=(
                f"order and gaps with a label timer of at least {PATIENCE_RTT} RTTs, without the "
                "freezing that ours begins at 4 MB"
            ),
        )
    ]


def _sizes(frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    return [
        (size, where(frame, message_bytes=size)) for size in sorted(frame["message_bytes"].unique())
    ]


def by_size(frame: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Return the mean increase of every scheme for each message size."""
    return {
        size: {policy: mean_of(rows, policy).mean for policy in BEST}
        for size, rows in _sizes(frame)
    }


def ordered(found: Mapping[int, Mapping[str, float]], margin: float = 0.01) -> bool:
    """Return whether Ofan is lowest and the others swap by no more than a point on both sides."""
    lowest = all(row["ofan"] <= min(row.values()) for row in found.values())
    gaps = [row[FREEZING] - row[SWITCHED] for row in found.values()]
    return lowest and not (max(gaps) > margin and min(gaps) < -margin)


def shrinks(gaps: Mapping[int, float], margin: float = 0.005) -> bool:
    """Return whether gaps fall with the message size from 1 MB on, up to half a point of noise."""
    # Messages within the BDP of 625 KB have left before an ACK returns: the longer, the more they
    # queue, and gaps rise. Beyond, the bound grows and they are to fall.
    values = [gaps[size] for size in sorted(gaps) if size >= MIB]
    return (
        all(later <= earlier + margin for earlier, later in itertools.pairwise(values))
        and values[-1] < values[0]
    )


def _row(found: Mapping[int, Mapping[str, float]]) -> str:
    return ", ".join(
        f"{_size(size)} {' / '.join(f'{100 * row[policy]:.1f}' for policy in BEST)} %"
        for size, row in found.items()
    )


def _why(broken: Mapping[str, bool]) -> str:
    return (f"Not so: {'; '.join(broken)}. " if broken else "") + (
        "Host Pkt AR's label timer may be as short as one zero-load RTT here: from 4 MB on "
        "queues delay some ACKs longer than that, labels time out without any failure, and the "
        "scheme freezes and reuses few labels. A timer of at least three RTTs (dotted) moves "
        "that to larger messages, but finds failures later (C05)."
    )


FIGURE = Figure(
    name="message_size",
    title="Message size",
    paper="fig. message size, section 7.1",
    caption=(
        "CCT increase over the bound on 128 hosts. Dotted: Host Pkt AR when labels time out no "
        "sooner than after three RTTs."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
