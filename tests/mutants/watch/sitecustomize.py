"""Notes which functions of this checkout a test enters, in whatever process, as they are entered.

Python imports this module when it starts with this folder on its path. Where OFAN_ENTERED names a
file, a line `MODULE LINE` is added for every first call, LINE being the function's first; 1 stands
for the import. A process may be killed at any time, so that nothing waits for its end.
"""

import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

ROOT = str(Path(__file__).resolve().parents[3]) + os.sep
NOTES = os.environ.get("OFAN_ENTERED")

# By identity, as the hash of a code object takes longer than most calls; listed objects stay alive.
known: dict[int, CodeType] = {}


def entered(frame: FrameType, _event: str, _argument: object) -> None:
    code = frame.f_code
    if id(code) in known:
        return

    known[id(code)] = code
    if NOTES and code.co_filename.startswith(ROOT):
        line = 1 if code.co_name == "<module>" else code.co_firstlineno
        # Opened anew: programs close files that they do not know when they become a daemon.
        file = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{code.co_filename.removeprefix(ROOT)} {line}\n".encode())
        os.close(file)


if NOTES:
    threading.settrace(entered)
    sys.settrace(entered)
