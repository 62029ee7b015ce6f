"""`simple_switch_CLI`: commands for a switch's runtime API, from a terminal or a script on stdin.

It ends with status 0 where everything was done, 1 where a line of a script was not, 2 where it
could not start.
"""

from __future__ import annotations

import argparse
import cmd
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from ofan_p4.runtime_cli import arrays, crcs, profiles, tables, target
from ofan_p4.runtime_cli.names import InputError, Names
from ofan_p4.runtime_cli.session import COMMANDS, Session
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import CallError, Refusal
from ofan_p4.softswitch.daemon.thrift.rpc import Client
from ofan_p4.softswitch.daemon.thrift.wire import WireError
from ofan_p4.standard_output import StdoutError, guarded_stdout

# They register their commands.
MODULES = (arrays, crcs, profiles, tables, target)
# Further commands of BMv2's own tool, not supported by this switch.
REFUSED = {
    "load_new_config_file",
    "mc_set_lag_membership",
    "port_add",
    "port_remove",
    "pvs_add",
    "pvs_clear",
    "pvs_get",
    "pvs_remove",
    "serialize_state",
    "set_toeplitz_hash_key",
    "show_pvs",
    "swap_configs",
    "table_indirect_reset_default",
    "table_indirect_set_default",
    "table_indirect_set_default_with_group",
}
KINDS: dict[type[IntEnum], str] = {
    m.TableError: "table",
    m.CounterError: "counter",
    m.MeterError: "meter",
    m.RegisterError: "register",
    m.CrcError: "crc",
    m.MulticastError: "PRE",
    m.MirroringError: "mirroring",
}
FAILURES = (InputError, CallError, WireError)


class Shell(cmd.Cmd):
    """A shell that reads commands line by line; `failed` is True once a command was not done."""

    prompt = "RuntimeCmd: "
    intro = None

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.failed = False

    def onecmd(self, line: str) -> bool:
        """Run a line; whether it was the last."""
        tokens = line.split()
        # Empty lines and comments.
        if not tokens or tokens[0].startswith(("#", "//")):
            return False
        if tokens[0] in ("EOF", "quit", "exit"):
            print()
            return True

        try:
            for text in self._lines(tokens):
                print(text)
        except Refusal as refusal:
            self._fail(f"Invalid {KINDS[type(refusal.code)]} operation ({refusal})")
        except FAILURES as error:
            self._fail(f"Error: {error}")

        sys.stdout.flush()
        return False

    def completenames(self, text: str, *_ignored: object) -> list[str]:
        """Return the commands that begin like this."""
        return sorted(name for name in COMMANDS if name.startswith(text))

    def _lines(self, typed: list[str]) -> Sequence[str]:
        name, *rest = typed
        if name in ("help", "?"):
            return _help(rest)
        if name not in COMMANDS:
            reason = "is not supported by this switch" if name in REFUSED else "is no command"
            raise InputError(f"{name} {reason}")

        return [*COMMANDS[name](self._session, rest)]

    def _fail(self, text: str) -> None:
        self.failed = True
        print(text)


def _help(names: list[str]) -> list[str]:
    shown = [name for name in names or sorted(COMMANDS) if name in COMMANDS]
    return [f"{COMMANDS[name].usage}\n    {COMMANDS[name].run.__doc__}" for name in shown]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run commands from standard input; the exit status."""
    try:
        with guarded_stdout():
            return _run(arguments)
    except StdoutError as error:
        return _end(str(error), 1)


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        client = Client(options.thrift_ip, options.thrift_port)
        source = Path(options.json).read_bytes() if options.json else None
        names = Names(source or client.call("standard:bm_get_config").encode())
        shell = Shell(Session(client, names))
        shell.cmdloop()
    except (EOFError, OSError) as error:
        reason = getattr(error, "strerror", None) or "the switch has ended the connection"
        return _end(f"{options.thrift_ip}:{options.thrift_port}: {reason}")
    except (CallError, PipelineError, WireError) as error:
        return _end(str(error))
    except KeyboardInterrupt:
        return 130

    return 1 if shell.failed and not sys.stdin.isatty() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simple_switch_CLI", description=__doc__.splitlines()[0])
    parser.add_argument("--thrift-port", type=int, default=9090, help="the switch's port (9090)")
    parser.add_argument("--thrift-ip", default="localhost", help="its address (localhost)")
    parser.add_argument("--json", help="the program's BMv2 JSON (default: ask the switch)")
    parser.add_argument("--pre", choices=["SimplePreLAG"], help="what simple_switch has")
    return parser


def _end(text: str, status: int = 2) -> int:
    sys.stderr.write(f"simple_switch_CLI: {text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
