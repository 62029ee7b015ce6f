"""Fabrics in htsim's topology files (`.topo`), as the keys of `[fabric]` that mean the same.

A file has words and numbers line by line: `Nodes`, `Tiers` (2 or 3) and `Podsize` (hosts), then a
block a tier, from `Tier 0` at the hosts on. A tier's links are those below it; `Bundle` is how many
of them are parallel. Words may be written in any case, `#` begins a comment.
"""

from fattree.errors import ExperimentError
from fattree.files.fields import Fields, Use, names

HEAD_FIELDS = (Fields(("nodes", "tiers", "podsize"), Use.USED, ""),)
NEEDED_FIELDS = (
    Fields(("radix_down", "downlink_speed_gbps", "downlink_latency_ns"), Use.USED, "of each tier"),
)
OPTIONAL_FIELDS = (
    Fields(("radix_up",), Use.USED, "of each tier but the highest"),
    Fields(("bundle",), Use.USED, "1 if missing"),
    Fields(("oversubscribed",), Use.USED, "must be what the other numbers make; 1 if missing"),
    Fields(("switch_latency_ns",), Use.USED, "refused above 0: add it to the latency of links"),
)
# Keys of htsim's that belong elsewhere here.
ELSEWHERE_FIELDS = (
    Fields(("queue_up", "queue_down"), Use.REFUSED, "say fabric.queue_bytes in the experiment"),
)
TABLE = (
    *HEAD_FIELDS,
    Fields(("tier",), Use.USED, "begins a block"),
    *NEEDED_FIELDS,
    *OPTIONAL_FIELDS,
    *ELSEWHERE_FIELDS,
    Fields(("any other",), Use.REFUSED, ""),
)
HEAD = names(HEAD_FIELDS, Use.USED)
NEEDED = names(NEEDED_FIELDS, Use.USED)
OPTIONAL = names(OPTIONAL_FIELDS, Use.USED)
ELSEWHERE = {name: row.why for row in ELSEWHERE_FIELDS for name in row.names}
RATES = ("rate_gbps", "edge_agg_gbps", "agg_core_gbps")
LATENCIES = ("latency_ns", "edge_agg_latency_ns", "agg_core_latency_ns")
Block = dict[str, int]


def fabric_of(text: str, source: str) -> dict[str, int]:
    """Return the keys of a fabric from a file's text; `source` names it in errors.

    Raises ExperimentError.
    """
    head, tiers = _blocks(text, source)
    levels = head["tiers"]
    lower, upper = tiers[0], tiers[1]
    pod = head["podsize"] if levels == 3 else head["nodes"]
    counts = {
        "pods": _parts(source, "Nodes", head["nodes"], pod, "Podsize"),
        "edges_per_pod": _parts(
            source, "Podsize", pod, lower["radix_down"], "Radix_Down of tier 0"
        ),
        "hosts_per_edge": lower["radix_down"],
        "aggs_per_pod": _parts(
            source, "Radix_Up of tier 0", lower["radix_up"], upper["bundle"], "Bundle of tier 1"
        ),
        "edge_agg_links": upper["bundle"],
    }
    _expect(source, "Radix_Down of tier 1", upper["radix_down"], counts, "edges_per_pod", upper)

    if levels == 3:
        top = tiers[2]
        counts["cores_per_agg"] = _parts(
            source, "Radix_Up of tier 1", upper["radix_up"], top["bundle"], "Bundle of tier 2"
        )
        counts["agg_core_links"] = top["bundle"]
        _expect(source, "Radix_Down of tier 2", top["radix_down"], counts, "pods", top)

    speeds = {RATES[tier]: tiers[tier]["downlink_speed_gbps"] for tier in range(levels)}
    latencies = {LATENCIES[tier]: tiers[tier]["downlink_latency_ns"] for tier in range(levels)}
    return counts | speeds | latencies


def _parts(source: str, name: str, whole: int, part: int, of: str) -> int:
    if part < 1 or whole < part or whole % part:
        raise ExperimentError(f"{source}: {name} {whole} is no multiple of {of} {part}")

    return whole // part


def _expect(
    source: str, name: str, actual: int, counts: dict[str, int], key: str, tier: Block
) -> None:
    expected = counts[key] * tier["bundle"]
    if actual != expected:
        raise ExperimentError(
            f"{source}: {name} is {actual}, but the other numbers make it {expected}"
        )


def _blocks(text: str, source: str) -> tuple[Block, list[Block]]:
    """Return the numbers before the tiers, and each tier's, defaults filled in."""
    head: Block = {}
    blocks: dict[int, Block] = {}
    current = head
    for number, line in enumerate(text.splitlines(), 1):
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue

        position = f"{source}:{number}"
        key, value = _pair(tokens, position)
        if key == "tier":
            if value in blocks:
                raise ExperimentError(f"{position}: tier {value} a second time")

            current = blocks[value] = {}
        elif key not in (HEAD if current is head else (*NEEDED, *OPTIONAL)):
            where = ELSEWHERE.get(key)
            hint = f" ({where})" if where else ""
            # Nothing is quoted of a file that has no word of this format before.
            unknown = f"unknown word {tokens[0]:.40}" if head or where else "expected Nodes"
            raise ExperimentError(f"{position}: {unknown}{hint}")
        elif key in current:
            raise ExperimentError(f"{position}: {tokens[0]} a second time")
        else:
            current[key] = value

    return head, _complete(head, blocks, source)


def _pair(parts: list[str], location: str) -> tuple[str, int]:
    if len(parts) != 2 or not (parts[1].isascii() and parts[1].isdigit()) or len(parts[1]) > 9:
        raise ExperimentError(f"{location}: expected a word and a number, as in Radix_Down 8")

    return parts[0].lower(), int(parts[1])


def _complete(head: Block, blocks: dict[int, Block], source: str) -> list[Block]:
    for key in HEAD:
        if key not in head:
            raise ExperimentError(f"{source}: {key.capitalize()} is missing")

    levels = head["tiers"]
    if levels not in (2, 3) or sorted(blocks) != list(range(levels)):
        raise ExperimentError(f"{source}: expected Tiers 2 or 3, and Tier 0 to Tier N - 1")

    for tier in range(levels):
        _complete_tier(blocks[tier], f"{source}: tier {tier}", is_top=tier == levels - 1)

    for tier in range(levels - 1):
        _check_ratio(blocks[tier], blocks[tier + 1], f"{source}: tier {tier}")

    return [blocks[tier] for tier in range(levels)]


def _complete_tier(block: Block, location: str, is_top: bool) -> None:
    for key in NEEDED if is_top else (*NEEDED, "radix_up"):
        if not block.get(key):
            raise ExperimentError(f"{location} needs {key}")

    if block.get("switch_latency_ns"):
        raise ExperimentError(
            f"{location}: switches take no time here: add Switch_Latency_ns to the latency of links"
        )

    block.setdefault("bundle", 1)


def _check_ratio(block: Block, above: Block, location: str) -> None:
    """Raise ExperimentError where `Oversubscribed` is not the capacity below over that above."""
    down = block["radix_down"] * block["downlink_speed_gbps"]
    up = block["radix_up"] * above["downlink_speed_gbps"]
    ratio = block.get("oversubscribed", 1)
    if down != ratio * up:
        raise ExperimentError(
            f"{location}: Oversubscribed {ratio} is not what {down} Gbit/s down and {up} up make"
        )
