"""`ofan p4 stf` and `ofan p4 trace`, which also find Ofan's programs and includes.

The P4 tools themselves do not know Ofan's files.
"""

import click

from emulation.commands.includes import find_ours
from emulation.shipped_file import ShippedFile
from ofan_p4.stf import cli, trace_command

stf_command = cli.stf_command
trace = trace_command.trace
# For each command, the parameters that may name a file of Ofan's.
FILES = {stf_command: ("program", "script"), trace: ("program", "files")}


def _find_files(command: click.Command, names: tuple[str, ...]) -> None:
    for parameter in command.params:
        if parameter.name in names:
            assert isinstance(parameter.type, click.Path)
            parameter.type = ShippedFile(folders=parameter.type.dir_okay)

    # The commands' names in Ofan.
    command.epilog = (command.epilog or "").replace("ofan-p4", "ofan p4")


for command, names in FILES.items():
    _find_files(command, names)
    find_ours(command)
