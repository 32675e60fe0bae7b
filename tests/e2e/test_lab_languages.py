"""JupyterLab in another language: every text of the plugin comes from a language pack that is made of its catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Lab, command, expect, open_notebook, wait_for_notebook

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CATALOGUE = ROOT / "extension" / "locale" / "workbench.pot"
LOCALE = "eo"
PLURALS = "nplurals=2; plural=(n != 1);"
CELL = """
import workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
strategy.run(lambda: None)
"""
PLACES = "#workbench-panel, .wb-status-item, .wb-pane-bar, .wb-help"
SAID = """(places) => [...document.querySelectorAll(places)].flatMap((root) => {
  const said = [];
  for (const walk = document.createTreeWalker(root, 5); walk.nextNode(); ) {
    const node = walk.currentNode;
    if (node.nodeType === 3) said.push(node.data);
    else for (const name of ["aria-label", "title", "placeholder"]) said.push(node.getAttribute(name) ?? "");
  }
  return said;
})"""
"""All that the plugin says in these places, around its views: texts, and what screen readers and tooltips say."""


def marked(text: str) -> str:
    return f"⟦{text}⟧"


def language_pack(folder: Path) -> None:
    """A package as translators publish them; its translation of a text is the text in brackets."""
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with CATALOGUE.open("rb") as file:
        catalogue = read_po(file, locale=LOCALE)
    texts: dict[str, Any] = {"": {"domain": "workbench", "language": LOCALE, "plural_forms": PLURALS}}
    for message in catalogue:
        if not message.id:
            continue
        forms = message.id if isinstance(message.id, tuple) else (message.id,)
        message.string = tuple(map(marked, forms)) if len(forms) > 1 else marked(forms[0])
        key = f"{message.context}\x04{forms[0]}" if message.context else forms[0]
        texts[key] = list(map(marked, forms))
    name = f"jupyterlab_language_pack_{LOCALE}"
    messages = folder / name / "locale" / LOCALE / "LC_MESSAGES"
    messages.mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (messages / "workbench.json").write_text(json.dumps(texts), encoding="utf-8")
    with (messages / "workbench.mo").open("wb") as binary:
        write_mo(binary, catalogue)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="ascii")
    (about / "entry_points.txt").write_text(
        f"[jupyterlab.languagepack]\n{LOCALE} = {name}\n", encoding="ascii"
    )


@pytest.fixture(scope="module")
def installed(lab: Lab) -> None:
    """The language pack in the server's working folder, where Python looks for packages."""
    language_pack(lab.root)


@pytest.fixture
def translated(page: Any, lab: Lab, installed: None) -> Any:
    """A page in the language of the pack, in which a cluster runs."""
    open_notebook(page, lab, lab.notebook("one_cell.ipynb", CELL))
    page.evaluate(
        "(raw) => window.jupyterapp.serviceManager.settings.save('@jupyterlab/translation-extension:plugin', raw)",
        json.dumps({"locale": LOCALE}),
    )
    page.reload()
    wait_for_notebook(page)
    command(page, "notebook:run-all-cells")
    expect(page.locator(".wb-pane")).to_have_count(2)
    return page


def strings(value: Any) -> Iterable[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def untranslated(texts: Iterable[str], data: Iterable[str]) -> list[str]:
    """The texts in which something is neither translated nor data."""
    known = sorted({text for text in data if text}, key=len, reverse=True)
    left: list[str] = []
    for text in texts:
        rest = re.sub(r"⟦[^⟦⟧]*⟧", "", text)
        for one in known:
            rest = rest.replace(one, "")
        if re.search(r"[^\W\d_]{2}", re.sub(r"⟦[^⟦⟧]*⟧", "", rest)):
            left.append(text)
    return left


def test_every_text_of_the_plugin_is_translated(translated: Any, lab: Lab) -> None:
    command(translated, "workbench:show-panel")
    panel = translated.locator("#workbench-panel")
    expect(panel.locator(".wb-cluster")).to_have_count(1)
    expect(panel.locator("h2 button")).to_have_text(
        [marked(text) for text in ("Clusters", "Strategies", "Panes", "Layouts", "Recorded runs")]
    )
    command(translated, "workbench:help")
    expect(translated.locator(".wb-help")).to_contain_text(marked("Keys"))
    data = [
        *strings(lab.request("GET", "/workbench/api/clusters")),
        "overview",
        "collectives",
        "debugging",
        "data",
    ]

    said = translated.evaluate(SAID, PLACES)
    assert len(said) > 60
    assert untranslated(said, data) == []
    labels = translated.evaluate(
        "() => { const { commands } = window.jupyterapp; return commands.listCommands()"
        ".filter((id) => id.startsWith('workbench:')).flatMap((id) => [commands.label(id), commands.caption(id)]); }"
    )
    assert len(labels) >= 40
    assert "" not in labels
    assert untranslated(labels, ()) == []
    assert untranslated(["wait"], ()) == ["wait"]


@pytest.mark.thorough
def test_panes_are_named_in_the_language(translated: Any) -> None:
    command(translated, "workbench:open-pane", view="lanes")

    expect(translated.locator(".lm-TabBar-tabLabel", has_text=marked("Lanes"))).to_have_count(1)
    label = "() => window.jupyterapp.commands.label('workbench:open-pane', { view: 'lanes' })"
    assert translated.evaluate(label) == marked("Open pane: Lanes").replace("Lanes", marked("Lanes"))


@pytest.mark.thorough
def test_the_settings_are_translated(translated: Any, lab: Lab) -> None:
    schema = lab.request("GET", "/lab/api/settings/workbench-lab:plugin")["schema"]

    assert schema["title"] == marked("Workbench")
    assert schema["properties"]["layoutAtStart"]["title"] == marked("Layout at start")
