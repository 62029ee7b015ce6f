"""The rule of each load balancer, as a table: the sentences of `fattree.policies`.

`python -m pages.balancers PAGE` writes it into the documentation's page, between its marks.
"""

import re
import sys
from pathlib import Path

from fattree.policies import POLICIES, Policy

BEGIN = "<!-- begin: pages/balancers.py -->"
END = "<!-- end: pages/balancers.py -->"
HEAD = """| load balancer | `--policies` | decides | what it does | program |
|---|---|---|---|---|
"""
SINCE = "load-balancers-since.md"


def table() -> str:
    """Return the table: the paper's load balancers, then the others."""
    return HEAD + "".join(map(_row, POLICIES.values()))


def _row(policy: Policy) -> str:
    name = f"[{policy.label}]({SINCE})" if policy.since else policy.label
    program = f"`p4src/{policy.program}.p4`"
    return f"| {name} | `{policy.slug}` | {policy.where} | {policy.rule} | {program} |\n"


def written(page: str) -> str:
    """Return a page with the table as it is now between its marks."""
    between = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n{table()}{END}", page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
