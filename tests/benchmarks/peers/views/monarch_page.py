"""The overview of PyTorch Monarch's dashboard while a mesh of two actors, a process each, works at a fixed rate."""

from __future__ import annotations

from tests.benchmarks.browser import job, measure_page
from tests.benchmarks.measure import Script
from tests.benchmarks.peers.views import monarch_job

DRAWN = """[...document.querySelectorAll("#root *")].some(
  (node) => !node.children.length && node.textContent === "step")"""


def main() -> None:
    """Measures it. A process of its own collects what happens and serves the page."""
    script = Script("views", __doc__, pages=3, picture="")
    with job(monarch_job.work) as (url, pid):
        measure_page(script, "Monarch", url=url, drawn=DRAWN, serving=[pid], polls=True)


if __name__ == "__main__":
    main()
