"""`workbench docs`: opens the guide as a site on this machine."""

from __future__ import annotations

import argparse
import sys
import webbrowser

from workbench.cli.guide_site import GuideMissing, built_site


def run(options: argparse.Namespace) -> int:
    """Prints the guide's location, and opens it; returns 1 if it cannot be built."""
    try:
        page = built_site(print_progress=True) / "guide" / "index.html"
    except GuideMissing as error:
        print(error, file=sys.stderr)
        return 1
    print(page)
    if not options.no_browser:
        webbrowser.open(page.as_uri())
    return 0
