"""`ofan p4 stf` and `ofan p4 trace`, which also find what comes with Ofan: programs, includes.

The P4 tools themselves know nothing of ours.
"""

import click

from emulation.commands.includes import find_ours
from emulation.shipped_file import ShippedFile
from ofan_p4.stf import cli, trace_command

stf_command = cli.stf_command
trace = trace_command.trace
# Of each command, the parameters that may name a file of ours.
FILES = {stf_command: ("program", "script"), trace: ("program", "files")}


def _find_files(command: click.Command, names: tuple[str, ...]) -> None:
    for each in command.params:
        if each.name in names:
            assert isinstance(each.type, click.Path)
            each.type = ShippedFile(folders=each.type.dir_okay)

    # As they are called here.
    command.epilog = (command.epilog or "").replace("ofan-p4", "ofan p4")


for command, names in FILES.items():
    _find_files(command, names)
    find_ours(command)
