"""The views in a page of real Chromium, on recorded models.

`python -m tests.extension.gallery FOLDER` takes pictures of them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import workbench
from tests.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

STATIC: Final = Path(workbench.__file__).parent / "static"
RECORDED: Final = Path(__file__).parents[2] / "extension" / "tests" / "recorded"
ORIGIN: Final = "http://gallery.test"
MODULES: Final = {f"{ORIGIN}/{name}.js": STATIC / f"{name}.js" for name in ("widget", "exports")}
SHOWN: Final = {
    "overview": ("collectives", "lost"),
    "topology": ("topology", "topology_busy", "topology_lost"),
    "values": ("values", "values_numbers", "values_elements", "values_apart"),
    "array_sharding": ("array_uneven", "array_copies"),
    "dataset_sharding": ("dataset_files", "dataset_memory", "dataset_running"),
    "input": ("input_starving", "input_measured"),
    "data_service": ("service_live", "service_waiting"),
    "servers": ("servers_live", "servers_lost"),
    "collectives": ("stuck",),
    "collective_table": ("collectives",),
    "lanes": ("collectives", "lost"),
    "sweep": ("collectives",),
    "heat_map": ("collectives",),
    "stuck": ("stuck",),
    "log": ("lost",),
    "devices": ("devices",),
    "runs": ("runs",),
    "replay": ("replay",),
}
"""View -> recorded models that it is shown with."""
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>views</title><html lang="en"><body style="margin:12px">
<main></main><script type="module">
import { mount, provideCode } from "./widget.js";
provideCode(async (name) => (await fetch(`./${name}.js`)).text());
window.show = (view, model, options) => {
  const place = document.createElement("div");
  place.style.margin = "0 0 18px";
  document.querySelector("main").append(place);
  (window.mounts ??= {})[view] = window.mounted = mount(view, place, model, options);
  window.asked = [];
};
window.ready = true;
</script></body></html>"""


def model(name: str) -> dict[str, Any]:
    """A recorded model."""
    if name == "replay":
        return _replay()
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _replay() -> dict[str, Any]:
    """A recorded run, assembled from recorded models of its parts."""
    run = next(run for run in model("runs")["runs"] if run["name"] == "baseline")
    steps = {"first_step": 0, "last_step": 119, "shown_from": 0, "shown_to": 119}
    parts = {"array_sharding": model("array_uneven"), "dataset_sharding": model("dataset_memory")}
    parts["input"] = model("input_starving") | {"status": "replay"}
    parts["data_service"] = model("service_live") | {"status": "replay"}
    parts["servers"] = model("servers_live") | {"status": "replay"}
    for view in ("collectives", "topology", "devices", "values"):
        parts[view] = model(view) | ({} if view == "values" else {"status": "replay"})
    return {"run": run, **steps, **parts, "notes": []}


def open_gallery(browser: Browser, *, dark: bool = False, width: int = 1000) -> Page:
    """An empty page with the views loaded, where nothing can be fetched from elsewhere.

    Its list `faults` collects errors of the console and requests that went out.
    """
    page = browser.new_page(
        viewport={"width": width, "height": 700}, color_scheme="dark" if dark else "light"
    )
    faults: list[str] = []
    page.faults = faults  # type: ignore[attr-defined]

    def answer(route: Route) -> None:
        if route.request.url == f"{ORIGIN}/":
            route.fulfill(body=PAGE, content_type="text/html")
        elif route.request.url in MODULES:
            route.fulfill(path=MODULES[route.request.url], content_type="text/javascript")
        else:
            faults.append(f"requested {route.request.url}")
            route.abort()

    page.route("**/*", answer)
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{ORIGIN}/")
    page.wait_for_function("() => window.ready")
    if dark:
        page.evaluate("() => document.body.style.background = '#111'")
    return page


def show(page: Page, view: str, shown: dict[str, Any], **options: Any) -> None:
    """Mounts a view at the end of the page."""
    page.evaluate("([view, model, options]) => window.show(view, model, options)", [view, shown, options])


def main() -> None:
    """Screenshots of all views, light and dark."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.extension.gallery",
        description="Takes screenshots of the views on recorded models, light and dark.",
    )
    parser.add_argument("folder", type=Path, help="where they go")
    parser.add_argument("only", nargs="*", metavar="VIEW", help="a view to take; default: all")
    options = parser.parse_args()
    folder, only = options.folder, options.only
    folder.mkdir(exist_ok=True)
    with chromium() as browser:
        for view, names in SHOWN.items():
            for dark in (False, True):
                if only and view not in only:
                    continue
                page = open_gallery(browser, dark=dark)
                for name in names:
                    show(page, view, model(name))
                page.screenshot(path=folder / f"{view}-{'dark' if dark else 'light'}.png", full_page=True)
                print(view, dark, page.faults)  # type: ignore[attr-defined]
                page.close()


if __name__ == "__main__":
    main()
