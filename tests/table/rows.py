"""The rows of the table: small experiments that use every key of the schema, and combinations.

A row is the content of an experiment file beside `BASE`. Rows of choices come from the schema.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from click.testing import CliRunner

from fattree.experiment.collective import Matrix
from fattree.experiment.hosts import Congestion
from fattree.policies import POLICIES, LabelRule
from ofan import cli
from tests.fattree.workloads import test_goal

Settings = Mapping[str, Any]
ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"

BASE: Settings = {
    "fabric": {"k": 4},
    "collective": {"message_bytes": 5 * 4096 + 100},
    "seed": 5,
}
INCAST = {
    "matrix": "pairs",
    "message_bytes": 12 * 4096,
    "pairs": [[host, host % 2] for host in range(2, 16)],
}
PFC = {"fabric": {"queue_bytes": 150_000, "flow_control": "pfc"}, "collective": INCAST}
SHARED = {
    "fabric": {"queue_bytes": 20_000, "buffer": "shared", "buffer_alpha": 0.5},
    "collective": INCAST,
    "transport": {"recovery": "sack"},
}
PFC_SHARED = {
    "fabric": PFC["fabric"] | {"buffer": "shared", "buffer_alpha": 0.5},
    "collective": INCAST,
}
ROCE = {
    "transport": {
        "recovery": "go_back_n",
        "congestion": "dcqcn",
        "reorder_packets": 8,
        "reorder_timeout_rtt": 0.5,
    }
}
TRIMMING = {
    "fabric": {"queue_bytes": 30_000},
    "collective": INCAST,
    "transport": {"recovery": "sack", "trimming": True},
}
LINK = {"link": "agg0_0-core0_0", "down_ns": 1_500, "up_ns": 9_000}
FAILING = {"failures": {"events": [LINK], "convergence_rtt": 1}}
HOST_LINK = {"failures": {"events": [{"host": "h0_0_1", "down_ns": 500, "up_ns": 900}]}}
SLOW = {"failures": {"degraded": [{"link": "agg0_0-core0_0", "rate": 0.25, "at_ns": 1_000}]}}
PLANES = {"fabric": {"planes": 2, "plane_use": "spray"}}
OWN_PROGRAM = {"program": {"file": str(EXPERIMENTS / "two_choices.p4"), "like": "simple_rr"}}
OWN_RULE: dict[str, dict[str, Any]] = {
    "host_rule": {"file": str(EXPERIMENTS / "fast_labels.py"), "like": "host_pkt_ar"}
}
OWN_PACKET: dict[str, dict[str, Any]] = {
    "agent_packet": {"file": str(EXPERIMENTS / "my_packet.py")},
    "packets": {"header_bytes": 66},
}
OF_MATRICES: Mapping[Matrix, Settings] = {
    "ring": {"steps": 2},
    "hierarchical_ring": {"steps": 2, "servers_per_ring": 4},
    "fsdp": {
        "message_bytes": None,
        "parameters": 10_000_000,
        "layers": 10,
        "servers_per_ring": 4,
        "steps": 1,
    },
    "pairs": {"pairs": [[0, 5], [1, 5]]},
    "file": {
        "message_bytes": None,
        "file": str(EXPERIMENTS / "two_rounds.cm"),
        "start_unit": "us",
    },
    "all_reduce": {"algorithm": "ring", "chunks": 2, "hosts": "pod0-1", "placement": "random"},
}


# So small a model that a step is a few packets.
MODEL = {
    "model_type": "gpt_neox",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
    "tie_word_embeddings": True,
}


def merged(*tables: Settings) -> dict[str, Any]:
    """Return one table of all: the last value of a key counts, and None takes the key away."""
    whole: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            is_table = isinstance(value, Mapping) and isinstance(whole.get(key), Mapping)
            whole[key] = merged(whole[key], value) if is_table else value

    return {key: value for key, value in whole.items() if value is not None}


def rows(folder: Path) -> dict[str, Settings]:
    """Return all rows by name; their files of traces and topologies go to a folder."""
    return {
        **{f"load balancer {row.label}": _balancer(slug) for slug, row in POLICIES.items()},
        **dict(_matrices(folder)),
        **dict(_transports()),
        **dict(_switches()),
        **dict(_fabrics(folder)),
        **dict(_failures()),
        **dict(_own()),
        **dict(_together()),
    }


def _balancer(slug: str) -> Settings:
    # Probes of MRC look for marks and losses, so that a row of its needs ACKs that name packets.
    needs_sack = POLICIES[slug].label_rule in (LabelRule.BITMAP, LabelRule.MRC)
    return {"policies": [slug]} | ({"transport": {"recovery": "sack"}} if needs_sack else {})


def _matrices(folder: Path) -> Iterator[tuple[str, Settings]]:
    for matrix in get_args(Matrix):
        if matrix != "workload":
            yield (
                f"matrix {matrix}",
                {"collective": {"matrix": matrix, **OF_MATRICES.get(matrix, {})}},
            )

    named = _replaced(matrix="fsdp", model="llama-7b", steps=1)
    yield "fsdp of a model", {"collective": named, "packets": {"payload_bytes": 65_000}}
    yield "fsdp of a hidden size", {"collective": _replaced(matrix="fsdp", hidden_size=64)}
    for name, file in _traces(folder).items():
        yield name, {"collective": _replaced(matrix="workload", file=str(file))}

    parts = {"matrix": "broadcast", "hosts": "pod0", "message_bytes": 9_000}
    jobs = [
        {"name": "first", "collective": parts, "start_ns": 100},
        {"name": "then", "collective": parts, "after": "first"},
    ]
    yield "jobs", {"collective": None, "jobs": jobs}


def _replaced(**collective: Any) -> Settings:
    """Return a collective without the message of `BASE`."""
    return {"message_bytes": None, **collective}


def _traces(folder: Path) -> dict[str, Path]:
    """Return other people's traces and a model's steps, converted by the commands, by name."""
    traces = Path(test_goal.__file__).parent
    model = folder / "config.json"
    model.write_text(json.dumps(MODEL), encoding="utf-8")
    commands = {
        "GOAL schedule": f"from-goal {traces / 'ring.goal'} FILE",
        "Chakra trace": f"from-chakra {traces / 'step'} FILE",
        "training step": f"from-model {model} FILE --gpus 8 --tp 1 --pp 2 --batch 8 --sequence 64",
        "serving": f"serve-model {model} FILE --requests 2 --prompt 64 --tokens 2 --kv-parts 2",
    }
    return {
        name: _converted(folder / f"{name.replace(' ', '_')}.parquet", command)
        for name, command in commands.items()
    }


def _converted(file: Path, command: str) -> Path:
    """Return a file that a command of `ofan workload` has written."""
    arguments = ["workload", *command.replace("FILE", str(file)).split(), "--force"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return file


def _transports() -> Iterator[tuple[str, Settings]]:
    # Windows are for senders that resend single packets; DCQCN goes with all.
    for congestion in get_args(Congestion):
        yield f"SACK, {congestion}", {"transport": {"recovery": "sack", "congestion": congestion}}

    for recovery in ("erasure", "go_back_n"):
        for congestion in ("fixed", "dcqcn", "nscc"):
            yield (
                f"{recovery.replace('_', '-')}, {congestion}",
                {"transport": {"recovery": recovery, "congestion": congestion}},
            )

    yield "reordering at NICs", ROCE
    yield "trimming", TRIMMING
    yield "trimming, `transport.acks_first`", merged(TRIMMING, {"transport": {"acks_first": True}})
    for key, value in {
        "sack_threshold": 3,
        "timer_floor_rtt": 10,
        "pacing_jitter": 0.1,
        "random_phases": False,
        "rate_limit": 0.5,
        "sharing": "active",
        "receiver_share": False,
        "packets_per_ack": 4,
    }.items():
        yield f"`transport.{key}`", {"transport": {"recovery": "sack", key: value}}


def _switches() -> Iterator[tuple[str, Settings]]:
    jsq = {"policies": ["jsq"], "load_balancer": {"queue_staleness_ns": 100}}
    yield "stale queue lengths", jsq
    plb = {"plb_acks": 3, "plb_percent": 30, "plb_gaps": 2}
    reps = {"freeze_us": 10, "reps_explore_packets": 4}
    marks = {"ecn_percent": 1, "ecn_full_percent": 3, "ecn_chance": 0.5}
    for slug, options in (
        ("simple_rr", {"rr_pointer": "shared"}),
        ("ofan", {"schedule_orders": "per_pointer"}),
        ("ofan", {"edge_pointers": "host", "agg_pointers": "edge"}),
        ("switch_pkt_ar", {"bins_percent": [1, 2, 3]}),
        ("host_flowlet_ar", plb),
        ("host_pkt_ar", reps),
        ("host_pkt_ar", marks),
    ):
        keys = ", ".join(f"`{key}`" for key in options)
        yield f"`load_balancer`: {keys}", {"policies": [slug], "load_balancer": options}

    yield (
        "`load_balancer`: `connections`",
        {
            "policies": ["mrc"],
            "collective": {"matrix": "ring", "message_bytes": 8 * 4096, "steps": 2},
            "load_balancer": {"connections": "pair"},
            "transport": {"recovery": "sack"},
        },
    )

    sizes = {
        "payload_bytes": 1_000,
        "header_bytes": 70,
        "ack_bytes": 84,
        "gap_bytes": 0,
        "tunnel_bytes": 20,
    }
    yield "sizes of packets", {"policies": ["host_dr"], "packets": sizes}


def _fabrics(folder: Path) -> Iterator[tuple[str, Settings]]:
    counts = {
        "k": None,
        "pods": 2,
        "edges_per_pod": 2,
        "hosts_per_edge": 2,
        "aggs_per_pod": 2,
        "cores_per_agg": 2,
    }
    yield "counts", {"fabric": counts}
    yield "parallel links", {"fabric": counts | {"edge_agg_links": 2, "agg_core_links": 2}}
    leaf_spine = {key: counts[key] for key in ("k", "edges_per_pod", "hosts_per_edge")}
    yield "leaf-spine", {"fabric": leaf_spine | {"aggs_per_pod": 3}}
    topology = folder / "small.topo"
    topology.write_text(
        "Nodes 16\nTiers 3\nPodsize 4\n"
        + "".join(
            f"Tier {tier}\nDownlink_speed_Gbps 800\nDownlink_Latency_ns 500\n"
            f"Radix_Down {down}\n" + (f"Radix_Up {down}\n" if tier < 2 else "")
            for tier, down in enumerate((2, 2, 4))
        ),
        encoding="utf-8",
    )
    yield "topology file", {"fabric": {"k": None, "topology": str(topology)}}
    yield "planes, sprayed", PLANES
    yield "planes, kept", merged(PLANES, {"fabric": {"plane_use": "keep"}})
    yield "planes, drawn", merged(PLANES, {"fabric": {"plane_use": "draw"}})
    levels = {
        "rate_gbps": 400,
        "latency_ns": 100,
        "edge_agg_gbps": 800,
        "agg_core_gbps": 200,
        "edge_agg_latency_ns": 300,
        "agg_core_latency_ns": 700,
    }
    yield "rates and latencies of levels", {"fabric": levels}
    buffers = {"queue_bytes": 10_000, "threshold_bytes": 9_000}
    yield "full buffers", {"fabric": buffers, "collective": INCAST}
    yield "PFC", PFC
    yield "PFC, `headroom_bytes`", merged(PFC, {"fabric": {"headroom_bytes": 113_000}})
    yield "PFC, go-back-N, DCQCN", merged(PFC, ROCE)
    yield "shared memory", SHARED
    yield "shared memory, PFC", PFC_SHARED


def _failures() -> Iterator[tuple[str, Settings]]:
    for rtts in (0, 1, "inf"):
        event = {"failures": {"events": [LINK], "convergence_rtt": float(rtts)}}
        yield f"link down and up, G = {rtts} RTT", event

    yield "links that fail by chance", {"failures": {"rate": 0.05, "at_ns": 1_000}}
    flaps = {**LINK, "times": 3, "every_ns": 10_000}
    yield "flaps", {"failures": {"events": [flaps]}}
    core = {"switch": "core0_0", "down_ns": 1_000}
    yield "core down", {"failures": {"events": [core]}}
    edge = {"switch": "edge1_0", "down_ns": 1_000, "up_ns": 3_000}
    yield "edge down and up", {"failures": {"events": [edge]}}
    yield "host's link down and up", HOST_LINK
    yield "local repair", merged(FAILING, {"failures": {"local_repair": True}})
    losses = [{"link": LINK["link"], "share": 0.05}, {"host": "h3_0_0", "share": 0.05}]
    losses.append({"switch": "core1_1", "share": 0.01})
    yield "losses", {"failures": {"losses": losses}}
    slow = [
        {"link": "agg0_0-core0_0", "rate": 0.25, "at_ns": 1_000, "until_ns": 8_000},
        {"switch": "agg2_1", "rate": 0.7, "direction": "down"},
        {"host": "h0_0_1", "rate": 0.5},
    ]
    yield "slow links", {"failures": {"degraded": slow}}
    storm = [{"host": "h0_0_0", "at_ns": 500, "until_ns": 40_000}]
    watched = {"pause_watchdog_us": 10, "pause_watchdog": "ignore"}
    yield "PFC, storm and watchdog", merged(PFC, {"fabric": watched, "failures": {"storms": storm}})
    probes = {"detection": "probe", "probe_interval_us": 5, "probe_misses": 3}
    yield "failures found by probes", merged(FAILING, {"controller": probes})
    yield "failures found by the kernel", merged(FAILING, {"controller": {"detection": "netlink"}})
    yield "weights of BGP", merged(FAILING, {"controller": {"weights": "bgp"}})
    yield "switches' lags", merged(FAILING, {"controller": {"spread_rtt": [0, 0.5, 2]}})
    routed = {"failures": {"events": [LINK]}, "controller": {"kind": "bgp"}}
    yield "switches that follow BGP", routed
    damping = {"damping_half_life_us": 20, "damping_suppress": 3, "damping_reuse": 1}
    often = {**LINK, "down_ns": 500, "up_ns": 900, "times": 8, "every_ns": 1_000}
    yield "damped flaps", {"failures": {"events": [often]}, "controller": damping}
    yield (
        "names, seeds, horizon",
        {
            "name": "small",
            "label": "a row",
            "seeds": 2,
            "horizon_us": 100_000,
        },
    )


def _own() -> Iterator[tuple[str, Settings]]:
    macros = {"program": {"file": str(EXPERIMENTS / "flowlets.p4")}, "defines": {"GAP_US": 5}}
    yield "own P4 program", OWN_PROGRAM
    yield "own P4 program with macros", macros
    header = {"program": {"file": str(EXPERIMENTS / "path_queues.p4")}}
    yield "own P4 program, header between edges", header
    yield "own P4 program, header between edges, PFC", merged(PFC, header)
    # Slow enough for a fabric of real processes.
    probes = {"program": {"file": str(EXPERIMENTS / "silent_paths.p4")}}
    slowly = {"defines": {"PROBE_INTERVAL_US": 100_000, "SILENT_US": 1_000_000}}
    yield "own P4 program, probes", probes | slowly
    yield "own P4 program, PFC", merged(PFC, OWN_PROGRAM)
    yield "own P4 program, shared memory", merged(SHARED, OWN_PROGRAM)
    yield "own P4 program, shared memory, PFC", merged(PFC_SHARED, OWN_PROGRAM)
    yield "own P4 program, trimming", merged(TRIMMING, OWN_PROGRAM)
    yield "own P4 program, failures", merged(FAILING, OWN_PROGRAM)
    text = {"text": Path(OWN_RULE["host_rule"]["file"]).read_text(encoding="utf-8")}
    yield "own host rule", merged(OWN_RULE, {"host_rule": text})
    text = {"text": Path(OWN_PACKET["agent_packet"]["file"]).read_text(encoding="utf-8")}
    yield "own packet", merged(OWN_PACKET, {"agent_packet": text})


def _together() -> Iterator[tuple[str, Settings]]:
    """Yield combinations that have been refused, or that share code."""
    yield "PFC, planes", merged(PFC, PLANES)
    yield "PFC, link down and up", merged(PFC, FAILING)
    yield "PFC, host's link down and up", merged(PFC, HOST_LINK)
    yield "PFC, slow links", merged(PFC, SLOW)
    yield "PFC, trimming", merged(PFC, {"transport": {"recovery": "sack", "trimming": True}})
    probes = {"controller": {"detection": "probe"}}
    yield "PFC, failures found by probes", merged(PFC, FAILING, probes)
    stale = {"policies": ["jsq"], "load_balancer": {"queue_staleness_ns": 100}}
    yield "PFC, stale queue lengths", merged(PFC, stale)
    trims = {"transport": {"trimming": True}}
    yield "shared memory, trimming", merged(SHARED, trims)
    yield "shared memory, planes", merged(SHARED, PLANES)
    yield "shared memory, slow links", merged(SHARED, SLOW)
    yield "trimming, planes", merged(TRIMMING, PLANES)
    yield "trimming, link down and up", merged(TRIMMING, FAILING)
    yield "trimming, slow links", merged(TRIMMING, SLOW)
    yield "trimming, NSCC", merged(TRIMMING, {"transport": {"congestion": "nscc"}})
    yield "trimming, go-back-N", merged(TRIMMING, {"transport": {"recovery": "go_back_n"}})
