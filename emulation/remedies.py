"""Remedies for missing packages: in a checkout by `make`, elsewhere for a wheel."""

import os
import shutil
import sys
from pathlib import Path

IS_CHECKOUT = (Path(__file__).parents[1] / "setup.sh").is_file()
REINSTALL = (
    "`make setup` makes .venv anew"
    if IS_CHECKOUT
    else "install Ofan into a venv of the system's Python that sees its packages"
    " (/usr/bin/python3 -m venv --system-site-packages)"
)
SHELL = (
    "`make setup` installs it"
    if IS_CHECKOUT
    else "install p4runtime-shell into a venv of its own, and write the path of its python into"
    f" {Path(sys.prefix) / 'ofan-shell'}"
)
# `which` finds nothing before the environment is activated; root does not search its caller's PATH.
ON_PATH = os.geteuid() != 0 and shutil.which("ofan")
OFAN = "$(which ofan)" if ON_PATH else Path(sys.executable).with_name("ofan")
SUDO = f"sudo {OFAN}"
