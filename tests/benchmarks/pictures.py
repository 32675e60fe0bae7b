"""Takes the pictures that the guide shows side by side: each tool's page of the same job, in the same size.

    python -m tests.benchmarks.pictures --peers PYTHON     # then `python -m tests.benchmarks.readme`

A script of the suite "views" takes each one, in the environment that it measures in, once the page has filled. What
cannot be taken keeps the picture that it has. The versions and the day are written to results/pictures.json.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.environments import Environment, environments
from tests.benchmarks.scripts import run_script
from tests.benchmarks.suites import SUITES, Job
from tests.few_colours import few_colours

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "notebooks" / "guide" / "images" / "side-by-side"
TAKEN = Path(__file__).parent / "results" / "pictures.json"
SIZE = (1200, 700)
MOST_BYTES = 60_000
_MOST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
      name: Its file is called so.
      command: The job of the suite "views" that takes it.
      distribution: What has the version; "" for workbench.
      title: What it is a picture of.
      shows: What can be seen there.
      options: For the script, besides its own.
    """

    name: str
    command: str
    distribution: str
    title: str
    shows: str
    options: tuple[str, ...] = ()


PICTURES = (
    Picture(
        "overview",
        "ours.views.page",
        "",
        "workbench, Overview",
        "the verdict, what each replica does in the newest steps, who is late, the loss",
    ),
    Picture(
        "dask",
        "peers.views.dask_page",
        "distributed",
        "Dask's dashboard, Status",
        "memory and load of workers, and a bar for each task",
    ),
    Picture(
        "tensorboard",
        "peers.views.tensorboard_page",
        "tensorboard",
        "TensorBoard, Time Series",
        "the scalars that the job writes, a line per replica",
    ),
    Picture(
        "monarch",
        "peers.views.monarch_page",
        "torchmonarch",
        "PyTorch Monarch's dashboard, Overview",
        "how many actors there are, how they are, and how many messages they got",
    ),
    Picture(
        "cluster",
        "ours.views.page",
        "",
        "workbench, Cluster",
        "hosts, workers, devices and replicas, and the load of each device",
        ("--tab", "Cluster"),
    ),
    Picture(
        "nvdashboard",
        "peers.views.nvdashboard_page",
        "jupyterlab-nvdashboard",
        "jupyterlab-nvdashboard, Machine Resources",
        "the machine while the job runs; without a GPU, its other pages have nothing to show",
    ),
    Picture(
        "array",
        "ours.views.sharding",
        "",
        "workbench, `wb.explain_sharding(array)` and `wb.inspect(array)`",
        "who holds which part of an array of JAX, of 48 × 64, over four devices; below it its values",
    ),
    Picture(
        "treescope",
        "peers.views.treescope_prints",
        "treescope",
        "treescope, `render_array_sharding(array)` and the array",
        "the same array over the same devices, and below it its values",
    ),
)


def main() -> int:
    """Returns 1 if one could not be taken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.pictures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peers", default="", metavar="PYTHON", help="has the peers of the suite views")
    parser.add_argument("--only", default="", help="only pictures whose name contains this")
    options = parser.parse_args()
    found = environments(options.peers, "")
    known: dict[str, Any] = json.loads(TAKEN.read_text(encoding="utf-8")) if TAKEN.exists() else {}
    jobs = {job.command: job for job in SUITES["views"]}
    troubles = 0
    for picture in PICTURES:
        if options.only not in picture.name:
            continue
        job = jobs[picture.command]
        print(f"{picture.name}: {picture.command}", flush=True)
        trouble = found[job.environment].lacks(job.needs) or take(picture, job, found[job.environment])
        if trouble:
            troubles += 1
            print(f"  not taken: {trouble}")
            continue
        known[picture.name] = {
            "version": version(picture, found[job.environment]),
            "date": datetime.date.today().isoformat(),
        }
        TAKEN.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 1 if troubles else 0


def version(picture: Picture, environment: Environment) -> str:
    """Of the tool that is to be seen."""
    if not picture.distribution:
        import workbench

        return workbench.__version__
    return environment.versions[picture.distribution]


def take(picture: Picture, job: Job, environment: Environment) -> str:
    """Takes one and puts it into the guide.

    Returns:
      Why the guide keeps the picture that it has, or "".
    """
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / f"{picture.name}.png"
        trouble = run_script(
            environment.python, job.command, *picture.options, "--picture", str(taken),
            seconds=_MOST_SECONDS,
        )  # fmt: skip
        if trouble:
            return trouble
        if not taken.exists():
            return "no picture"
        small = compressed(taken)
    if len(small) > MOST_BYTES:
        return f"{len(small):,} bytes are more than {MOST_BYTES:,}"
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{picture.name}.webp").write_bytes(small)
    print(f"  {len(small) / 1000:.0f} kB")
    return ""


def compressed(taken: Path) -> bytes:
    """A picture with 256 colours, without further loss, as WebP."""
    from PIL import Image

    with Image.open(taken) as image:
        few = few_colours(image).convert("RGB")
    content = io.BytesIO()
    few.save(content, "WEBP", lossless=True, quality=100, method=6)
    return content.getvalue()


if __name__ == "__main__":
    sys.exit(main())
