"""The `ofan-p4` command: the P4 tools by themselves. `ofan p4` has the same sub-commands."""

import os
import sys

import click

from ofan_p4.command import SETTINGS, Lazy, LazyGroup, run

COMMANDS = {
    "compile": Lazy(
        "ofan_p4.compiler.cli",
        "compile_command",
        "Compile P4_16 (v1model) to BMv2 JSON and P4Info.",
    ),
    "stf": Lazy(
        "ofan_p4.stf.cli",
        "stf_command",
        "Run tests in the STF format on our compiler and switch.",
    ),
    "trace": Lazy("ofan_p4.stf.trace_command", "trace", "Show how packets walk through a program."),
    "install-names": Lazy(
        "ofan_p4.install_names",
        "install_names",
        "Make p4c, simple_switch_grpc, simple_switch_CLI, ..., for Makefiles that call them.",
    ),
}
EXAMPLES = """
\b
Examples:
  ofan-p4 compile router.p4 -o router.json   JSON for any BMv2 switch
  ofan-p4 stf router.p4                      test it: packets, expectations
  ofan-p4 trace router.p4 --entries router.stf   how packets walk through it
  ofan-p4 install-names ~/bin                p4c, simple_switch, ...
  softswitch router.json -i 1@veth0 -i 2@veth2   the switch itself
"""

cli = LazyGroup(
    COMMANDS,
    name="ofan-p4",
    help="A P4_16 compiler, packet tests and traces; `softswitch` is the switch.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings=SETTINGS,
)
click.version_option(package_name="ofan-p4", message="ofan-p4 %(version)s")(cli)


def start() -> None:
    """Run `ofan-p4` as a program of its own.

    As root it looks for modules nowhere but in this installation.
    """
    if os.geteuid() == 0 and not sys.flags.isolated:
        # Python has heeded PYTHONPATH and HOME when pip's script begins: a new Python ignores them.
        os.execv(sys.executable, [sys.executable, "-I", "-m", "ofan_p4.cli", *sys.argv[1:]])

    run(cli, "ofan-p4")


if __name__ == "__main__":
    start()
