"""What the guide takes from the code when it is built: public names, the help of commands and magics, a sample run."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
from functools import cache
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

NAMESPACES = (
    "workbench", "workbench.distribute", "workbench.distribute.experimental", "workbench.distribute.coordinator",
    "workbench.distribute.cluster_resolver", "workbench.distribute.partitioners",
    "workbench.distribute.server_optimizers", "workbench.data", "workbench.data.experimental",
    "workbench.data.service", "workbench.debugging", "workbench.debugging.experimental", "workbench.io",
    "workbench.nn", "workbench.testing", "workbench.compat", "workbench.compat.v1",
    "workbench.compat.v1.distribute", "workbench.compat.v1.experimental", "workbench.compat.towers",
)  # fmt: skip
"""Those with a page. What several of them have is described in the first one."""


class Namespace(SphinxDirective):
    """`{namespace} workbench.data`: the names of a package in the order of its list, each with its docstring."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        described = _described()
        parts, elsewhere = [], []
        for name in module.__all__:
            full, value = f"{module.__name__}.{name}", getattr(module, name)
            where = described.get(id(value), full)
            if where == full:
                parts.append(_entry(full, value))
            else:
                elsewhere.append(f"* `{full}` is `{where}`.")
        text = "\n\n".join(part for part in (*parts, "\n".join(elsewhere)) if part)
        return self.parse_text_to_nodes(f"````{{eval-rst}}\n{text}\n````")


@cache
def _described() -> dict[int, str]:
    """By id, where each public class and function is described."""
    found: dict[int, str] = {}
    for package in NAMESPACES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) or inspect.isroutine(value):
                found.setdefault(id(value), f"{package}.{name}")
    return found


def _entry(name: str, value: Any) -> str:
    """The directive of autodoc for one public name; "" for packages, which have pages of their own."""
    if isinstance(value, ModuleType):
        return ""
    if isinstance(value, type):
        if issubclass(value, BaseException):
            return f".. autoexception:: {name}"
        lines = [f".. autoclass:: {name}", "   :members:"]
        if not any(id(base) in _described() for base in value.__mro__[1:]):
            lines.append("   :inherited-members: object, dict, list, tuple, str, int, float")
        return "\n".join(lines)
    if inspect.isroutine(value):
        return f".. autofunction:: {name}"
    return f".. autodata:: {name}\n   :no-value:"


class CommandHelp(SphinxDirective):
    """`{command-help} join`: what `workbench join --help` prints; without an argument the help of `workbench`."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from workbench.cli.command_line import parser

        os.environ["COLUMNS"] = "90"  # argparse fills the terminal that it finds
        command = parser()
        if self.arguments:
            (commands,) = [a for a in command._actions if isinstance(a, argparse._SubParsersAction)]
            command = commands.choices[self.arguments[0]]
        text = command.format_help()
        return [nodes.literal_block(text, text, language="text")]


class Errors(SphinxDirective):
    """`{errors}`: the tree of errors, then each class."""

    def run(self) -> list[nodes.Node]:
        from workbench import errors

        tree = inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2]
        own = [
            name
            for name, value in vars(errors).items()
            if isinstance(value, type) and value.__module__ == errors.__name__ and not name.startswith("_")
        ]
        parts = [f".. autoexception:: workbench.errors.{name}" for name in own]
        described = self.parse_text_to_nodes("````{eval-rst}\n" + "\n\n".join(parts) + "\n````")
        return [nodes.literal_block(tree, tree, language="text"), *described]


class RecordSchema(SphinxDirective):
    """`{record-schema}`: the columns of records, from the docstring of `Record`."""

    def run(self) -> list[nodes.Node]:
        from workbench.telemetry.records import COLUMNS, INT32_COLUMNS, TEXT_COLUMNS, Record

        text = inspect.getdoc(Record) or ""
        meanings = dict(re.findall(r"^ *(\w+): (.+)$", text.partition("Attributes:")[2], re.MULTILINE))
        rows = []
        for name in COLUMNS:
            kind = "string" if name in TEXT_COLUMNS else "int32" if name in INT32_COLUMNS else "int64"
            rows.append(f"| `{name}` | {kind} | {meanings[name]} |")
        return self.parse_text_to_nodes("\n".join(["| column | type | meaning |", "|---|---|---|", *rows]))


class MagicHelp(SphinxDirective):
    """`{magic-help} replica`: the docstring of a magic, with its options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from workbench.ui.magics import WorkbenchMagics

        text = inspect.cleandoc(getattr(WorkbenchMagics, self.arguments[0]).__doc__ or "").strip(":\n ")
        return [nodes.literal_block(text, text, language="text")]


class SampleRun(SphinxDirective):
    """`{sample-run} sample/digits`: a recorded run in a frame, with all its views, which the browser draws by itself.

    The frame's page is one file with the views' code in it, so it also works where the guide is opened from a disk.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        import workbench as wb

        name, recorded = self.env.relfn2path(f"{self.arguments[0]}.parquet")
        self.env.note_dependency(recorded)
        page = (self.env.app.outdir / name).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        wb.report(page, wb.open_run(recorded), title="A recorded run")
        address = f"{self.arguments[0]}.html"
        frame = (
            f'<iframe class="sample-run" src="{address}" title="A recorded run with all its views"></iframe>'
        )
        link = f'<p><a href="{address}" target="_blank">Open the run on a page of its own</a></p>'
        return [nodes.raw("", frame + link, format="html")]


def _as_rst(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: what else means something in RST is escaped."""
    parts = re.split(r"(`[^`]+`)", "\n".join(lines))
    parts[::2] = [re.sub(r"(?<=\w)_(?!\w)|(?<=[\w(, ])\*(?! )|\|", r"\\\g<0>", part) for part in parts[::2]]
    for at in range(1, len(parts), 2):
        parts[at] = re.sub(r"\n *", " ", parts[at])
        if parts[at + 1][:1].isalnum():
            parts[at] += "\\ "
    lines[:] = "".join(parts).split("\n")
    if what in ("attribute", "data", "property") and lines:
        lines[0] = f": {lines[0]}"  # an empty type: napoleon takes what stands before the first colon for one


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("namespace", Namespace)
    app.add_directive("command-help", CommandHelp)
    app.add_directive("errors", Errors)
    app.add_directive("magic-help", MagicHelp)
    app.add_directive("record-schema", RecordSchema)
    app.add_directive("sample-run", SampleRun)
    app.connect("autodoc-process-docstring", _as_rst, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
