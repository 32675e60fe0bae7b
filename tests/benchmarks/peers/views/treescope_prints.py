"""Looking at 1 GB with treescope: a NumPy array, one of JAX on two devices, and the drawing of how that is sharded.

Sent is the HTML, compressed, as treescope does by default. The arrays are in the process that looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.browser import PICTURE
from tests.benchmarks.measure import Script
from tests.benchmarks.peers import jax_devices
from tests.chromium import chromium

GIGABYTE = 10**9
CALLS = 5
COLUMNS = 5000


def main() -> None:
    """Measures each with figures only, and with the heat map that `basic_interactive_setup` turns on.

    Treescope reads the corners of an array of this size. Told to read all of it, it adds mean, deviation and extremes.
    """
    script = Script("views", __doc__, replicas=2, picture="")
    if script.options.picture:
        picture(script.options.picture)
        return
    rows = int(script.options.scale * GIGABYTE) // (4 * COLUMNS)
    rows -= rows % script.options.replicas
    large = np.random.default_rng(0).normal(size=(rows, COLUMNS)).astype(np.float32)
    sharded = _sharded(large, script.options.replicas)
    import treescope
    from treescope.external import jax_support

    automatic = treescope.ArrayAutovisualizer()
    for who, value in (("treescope, NumPy", large), ("treescope, JAX", sharded)):
        for what, draw in (("inspect 1 GB", _nothing), ("its elements", automatic)):

            def look(value: Any = value, draw: Any = draw) -> str:
                with treescope.active_autovisualizer.set_scoped(draw):
                    return treescope.render_to_html(value, ignore_exceptions=True)

            _report(script, who, what, look)

    def look_at_all() -> str:
        with (
            treescope.active_autovisualizer.set_scoped(_nothing),
            jax_support.summarization_threshold.set_scoped({"default": None}),
        ):
            return treescope.render_to_html(sharded, ignore_exceptions=True)

    _report(script, "treescope, JAX, told to read all", "inspect 1 GB", look_at_all)
    _report(
        script,
        "treescope, JAX",
        "sharding",
        lambda: str(treescope.render_array_sharding(sharded)._repr_html_()),
    )


def picture(file: str) -> None:
    """A picture of the drawing of an array over several devices, and of its values."""
    import treescope

    value = _sharded(jax_devices.waves(), jax_devices.SHOWN)
    with treescope.active_autovisualizer.set_scoped(treescope.ArrayAutovisualizer()):
        parts = [treescope.render_array_sharding(value)._repr_html_(), treescope.render_to_html(value)]
    with chromium() as browser:
        page = browser.new_page(viewport=PICTURE)
        page.set_content('<body style="margin: 12px">' + "<hr>".join(parts))
        page.wait_for_timeout(2000)  # the script unpacks itself
        page.screenshot(path=file)


def _nothing(_value: Any, _path: Any) -> None:
    """Draws no array."""


def _sharded(large: np.ndarray, replicas: int) -> Any:
    """The same array, with its rows sharded over emulated devices."""
    jax_devices.mesh(replicas)
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    # With the explicit axes that make_mesh creates now, treescope 0.1.10 fails to slice.
    devices = Mesh(np.array(jax.devices()), ("i",))
    return jax.block_until_ready(jax.device_put(large, NamedSharding(devices, PartitionSpec("i"))))


def _report(script: Script, who: str, what: str, look: Callable[[], str]) -> None:
    began = time.perf_counter()
    look()
    first = time.perf_counter() - began
    seconds, sent = [], []
    for _ in range(CALLS):
        began = time.perf_counter()
        html = look()
        seconds.append(time.perf_counter() - began)
        sent.append(float(len(html.encode())))
    for name, unit, samples, scale in (
        (f"{what}, first time", "s", [first], 1.0),
        (what, "s", seconds, 1.0),
        (f"{what}, sent", "kB", sent, 1e-3),
    ):
        with script.case(who, name, unit=unit, scale=scale, replicas=script.options.replicas) as case:
            case.samples = samples


if __name__ == "__main__":
    main()
