"""`wb.explain_sharding` of an array of JAX on two devices of this process: time, and what a notebook is sent."""

from __future__ import annotations

import json
import time

import numpy as np

import workbench as wb
from tests.benchmarks.browser import PICTURE
from tests.benchmarks.measure import Script
from tests.benchmarks.peers import jax_devices
from tests.chromium import chromium
from tests.extension.gallery import open_gallery, show
from workbench.ui.render.plain_values import plain

GIGABYTE = 10**9
CALLS = 5
COLUMNS = 5000


def main() -> None:
    """Measures both; the views' code, which a kernel sends once, is not counted."""
    script = Script("views", __doc__, replicas=2, picture="")
    if script.options.picture:
        picture(script.options.picture)
        return
    _, over_devices, _ = jax_devices.mesh(script.options.replicas)
    import jax

    rows = int(script.options.scale * GIGABYTE) // (4 * COLUMNS)
    rows -= rows % script.options.replicas
    value = jax.block_until_ready(jax.device_put(np.zeros((rows, COLUMNS), np.float32), over_devices))
    seconds: list[float] = []
    sent: list[float] = []
    for _ in range(CALLS + 1):
        began = time.perf_counter()
        found = wb.explain_sharding(value)
        texts, model = [repr(found), found._repr_html_()], plain(found.model)
        seconds.append(time.perf_counter() - began)
        sent.append(float(len(json.dumps([*texts, model, model]).encode())))
    for name, unit, samples, scale in (
        ("sharding, first time", "s", seconds[:1], 1.0),
        ("sharding", "s", seconds[1:], 1.0),
        ("sharding, sent", "kB", sent[1:], 1e-3),
    ):
        with script.case("workbench", name, unit=unit, scale=scale, replicas=script.options.replicas) as case:
            case.samples = samples


def picture(file: str) -> None:
    """A picture of the views of an array over several devices, and of its values."""
    _, over_devices, _ = jax_devices.mesh(jax_devices.SHOWN)
    import jax

    value = jax.device_put(jax_devices.waves(), over_devices)
    with chromium() as browser:
        page = open_gallery(browser)
        page.set_viewport_size(PICTURE)
        show(page, "array_sharding", plain(wb.explain_sharding(value).model))
        show(page, "values", plain(wb.inspect(value, elements=...).model))
        page.wait_for_timeout(500)  # drawn by then
        page.screenshot(path=file)


if __name__ == "__main__":
    main()
