"""The views of a notebook outside JupyterLab: anywidget's own code, as VS Code and Colab load it, draws them.

Both fetch `anywidget/index.js` as an AMD module and give it the classes of `@jupyter-widgets/base`. Here that file
comes from the installed package. The classes are small: they have what Backbone and ipywidgets document, and no more.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anywidget
import pytest

from tests.exports import choose
from tests.extension.gallery import ORIGIN, model

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.e2e
ANYWIDGET = Path(anywidget.__file__).parent / "nbextension" / "index.js"
BASE = """
class DOMWidgetModel {
  constructor(attributes, manager) {
    this.attributes = attributes;
    this.widget_manager = manager;
    this.handlers = [];
    this.sent = [];
    this.initialize(attributes, {});
  }
  initialize() {}
  get(name) { return this.attributes[name]; }
  set(name, value) { this.attributes[name] = value; this.trigger(`change:${name}`, this, value); }
  save_changes() {}
  send(content) { this.sent.push(content); }
  on(event, callback, context) { this.handlers.push({ event, callback, context }); }
  once(event, callback, context) { this.on(event, callback, context); }
  off(event, callback, context) {
    const fits = (wanted, found) => wanted == null || wanted === found;
    this.handlers = this.handlers.filter((one) =>
      !(fits(event, one.event) && fits(callback, one.callback) && fits(context, one.context)));
  }
  trigger(event, ...given) {
    for (const one of [...this.handlers]) if (one.event === event) one.callback.apply(one.context ?? this, given);
  }
}
class DOMWidgetView {
  constructor(model) {
    this.model = model;
    this.el = document.createElement("div");
    this.$el = { empty: () => this.el.replaceChildren() };
  }
  remove() { this.el.remove(); }
}
window.define = (needs, make) => {
  if (needs.join() !== "@jupyter-widgets/base") throw new Error(`anywidget needs ${needs}`);
  window.loaded = make({ DOMWidgetModel, DOMWidgetView });
};
window.show = async (loader, views, drawn) => {
  const { AnyModel, AnyView } = window.loaded;
  const code = (window.code = new DOMWidgetModel({ text: views }, null));
  const manager = { get_model: async (id) => (id === "c0de" ? code : Promise.reject(new Error(`no model ${id}`))) };
  const traits = { _esm: loader, _anywidget_id: "workbench", view: "values", digest: "d1" };
  window.model = new AnyModel({ ...traits, model: drawn, code: "IPY_MODEL_c0de" }, manager);
  window.view = new AnyView(window.model);
  window.before = null;
  window.before = Object.keys(window).sort();
  document.querySelector("main").append(window.view.el);
  await window.view.render();
};
"""


def test_anywidget_s_own_code_draws_a_view_updates_it_and_takes_it_away(
    browser: Browser, built: ModuleType
) -> None:
    page = browser.new_page()
    faults: list[str] = []

    def answer(route: Route) -> None:
        if route.request.url == f"{ORIGIN}/":
            route.fulfill(body="<!doctype html><main></main>", content_type="text/html")
        else:
            faults.append(f"requested {route.request.url}")
            route.abort()

    page.route("**/*", answer)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{ORIGIN}/")
    page.add_script_tag(content=BASE)
    page.add_script_tag(path=ANYWIDGET)
    loader, views = (text_of(built, name) for name in ("loader", "widget"))
    page.evaluate("(given) => window.show(...given)", [loader, views, model("values")])

    view = page.locator("main .wb-values")
    view.get_by_text("MirroredVariable").first.wait_for()
    assert {"kind": "attached"} in page.evaluate("() => window.model.sent")
    assert page.evaluate("() => Object.keys(window).sort().join() === window.before.join()")

    newer: dict[str, Any] = {"kind": "model", "model": model("values_elements")}
    page.evaluate("(message) => window.model.trigger('msg:custom', message, [])", newer)
    view.get_by_text("field").first.wait_for()
    page.evaluate("(drawn) => window.model.set('model', drawn)", model("values"))
    view.get_by_text("MirroredVariable").first.wait_for()

    page.evaluate("() => window.code.set('field_terms', true)")  # wb.field_terms() in a cell
    view.get_by_role("columnheader", name="std").first.wait_for()
    page.evaluate("() => window.code.set('field_terms', false)")
    view.get_by_role("columnheader", name="std").first.wait_for(state="detached")

    page.evaluate("() => { window.code.send = () => { throw new Error('Cannot send'); }; }")
    choose(page, "Table (CSV)")
    page.get_by_text("values.csv is not saved: the code that makes files did not come").wait_for()
    page.evaluate("() => { delete window.code.send; }")
    choose(page, "Table (CSV)")  # the next request asks again, and a kernel that answers sends it
    page.wait_for_function("() => window.code.sent.length === 1")
    assert page.evaluate("() => window.code.sent") == [{"kind": "exports"}]
    answer_with = "(text) => window.code.trigger('msg:custom', { kind: 'exports', text }, [])"
    with page.expect_download() as download:
        page.evaluate(answer_with, text_of(built, "exports"))
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("name,")
    for other in ("Table (Parquet)", "Report (HTML)"):
        with page.expect_download():
            choose(page, other)
    assert page.evaluate("() => window.code.sent.length") == 1
    # What listens to the kernel's choice of words; nothing still waits for an answer.
    assert page.evaluate("() => window.code.handlers.map((one) => one.event)") == ["change:field_terms"]

    kept = page.evaluate("() => window.model.handlers.filter((one) => one.event === 'msg:custom').length")
    page.evaluate("() => window.view.remove()")
    page.wait_for_function(
        "(kept) => window.model.handlers.filter((one) => one.event === 'msg:custom').length < kept", arg=kept
    )
    assert page.locator("main .wb").count() == 0
    assert page.evaluate("() => window.model.sent.at(-1)") == {"kind": "visible", "visible": False}
    assert faults == []
    page.close()


@pytest.mark.parametrize("name", ["loader", "widget", "exports"])
def test_the_views_import_nothing_and_know_of_no_server_and_no_application(
    built: ModuleType, name: str
) -> None:
    text = text_of(built, name)

    assert re.findall(r"(?:^|[;\n])\s*import\b(?!\()|\brequire\s*\(", text) == []
    # From the code that they receive.
    assert len(re.findall(r"\bimport\(", text)) == (0 if name == "exports" else 1)
    for foreign in (
        "@jupyterlab",
        "@lumino",
        "jupyterapp",
        "/workbench/api",
        "google.colab",
        "acquireVsCodeApi",
    ):
        assert foreign not in text


def text_of(built: ModuleType, name: str) -> str:
    """One of the built modules."""
    return (built.BUNDLE / f"{name}.js").read_text(encoding="utf-8")
