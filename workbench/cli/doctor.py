"""`workbench doctor`: shows what is installed, which devices exist, what is missing and how to get it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from workbench import __version__
from workbench.cli import machine, software
from workbench.cli.findings import Finding, Status, as_text

SECTIONS: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = (
    ("Python", software.python),
    ("Packages", software.packages),
    ("Optional", software.extras),
    ("Jupyter", software.jupyter),
    ("Machine", machine.resources),
    ("Accelerators", machine.accelerators),
    ("Network", machine.ports),
    ("Shared memory", machine.shared_memory),
)


def run(options: argparse.Namespace) -> int:
    """Prints the report; returns 1 if something prevents workbench from working, otherwise 0."""
    del options  # Windows has no such limits
    print(f"workbench {__version__}\n")
    problems = 0
    for title, look in SECTIONS:
        findings = list(look())
        problems += sum(finding.status is Status.PROBLEM for finding in findings)
        print(as_text(title, findings), end="\n\n")
    if problems:
        print(f"{problems} {'problem' if problems == 1 else 'problems'}; the lines with -> say what to do")
    else:
        print("All that workbench needs is there. Next: workbench demo, or workbench lab")
    return 1 if problems else 0
