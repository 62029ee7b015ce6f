"""The fields of Chakra's nodes and their attributes: used, left out, or refused."""

from fattree.errors import TrafficError
from fattree.files.fields import Fields, Use, names

NODE_FIELDS = (
    Fields(("id", "name", "type", "data_deps", "attr"), Use.USED, ""),
    Fields(
        ("ctrl_deps",), Use.USED, "left out where they name missing nodes: they say who called whom"
    ),
    Fields(
        ("duration_micros",), Use.USED, "of computations; communication takes what the network does"
    ),
    Fields(("start_time_micros",), Use.LEFT_OUT, "nodes begin when those that they wait for end"),
    Fields(("inputs", "outputs"), Use.LEFT_OUT, "shapes of tensors; bytes are in `comm_size`"),
    Fields(("metadata of files and nodes",), Use.LEFT_OUT, "how the trace was recorded"),
    Fields(("any other",), Use.REFUSED, "the schema does not have it"),
)
ATTRIBUTES = (
    Fields(("comm_type", "comm_src", "comm_dst", "comm_tag", "pg_name", "is_cpu_op"), Use.USED, ""),
    Fields(("comm_size",), Use.USED, "of a receive left out: what arrives is what is sent"),
    Fields(("involved_dim",), Use.USED, "with `--dimensions`; left out where there is a `pg_name`"),
    Fields(("num_ops", "tensor_size"), Use.USED, "refused of a node without a duration"),
    Fields(("comm_priority",), Use.USED, "refused above 0: messages have no priorities"),
    Fields(
        ("stream", "tid", "fw_tid"),
        Use.LEFT_OUT,
        "a rank's GPU computes one thing at a time, and so does its CPU, as in ASTRA-sim",
    ),
    Fields(
        ("rf_id", "fw_parent", "seq_id", "scope", "op_schema"),
        Use.LEFT_OUT,
        "the profiler's numbers and names of operations",
    ),
    Fields(("any other",), Use.REFUSED, "`--ignore NAME` leaves it out"),
)
READ = frozenset(names(ATTRIBUTES, Use.USED))
KNOWN = frozenset(names(ATTRIBUTES, Use.USED, Use.LEFT_OUT))


def refuse_unknown(attributes: dict[str, object], ignored: frozenset[str], where: str) -> None:
    """Raise TrafficError for an attribute that could change times or bytes and is not used."""
    for name, value in attributes.items():
        if value is None and name in READ:
            raise TrafficError(f"{where}: {name} has a value of a kind that it never has")

        if name not in KNOWN and name not in ignored:
            raise TrafficError(
                f"{where}: the attribute {name[:60]!r} is not known here, and may change times or "
                f"bytes; where it does not, --ignore {name[:60]}"
            )

    if attributes.get("comm_priority"):
        raise TrafficError(
            f"{where}: comm_priority is {attributes['comm_priority']!r:.40}, but messages have no "
            "priorities here"
        )
