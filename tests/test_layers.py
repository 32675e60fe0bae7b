"""Imports go one way, from each layer to those before it; ARCHITECTURE.md draws them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench

PACKAGE = Path(workbench.__file__).resolve().parent
TYPESCRIPT = PACKAGE.parent / "extension" / "src"
_TYPESCRIPT_IMPORT = re.compile(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"')
LAYERS = [
    {
        "__version__",
        "allowance",
        "arguments",
        "by_value",
        "cluster_listeners",
        "errors",
        "extras",
        "faults",
        "forks",
        "lazy_names",
        "tree",
        "device_spec",
        "device_names",
        "telemetry",
    },
    {"backends"},
    {"communicators"},
    {"runtime"},
    {"io"},
    {"data", "debugging"},
    {"distribute"},
    {"checkpoint", "compat", "nn"},
    {"ui", "testing", "server", "dashboards", "cli", "__main__"},
    {"workbench"},  # the package itself: `import workbench as wb`
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
ROOMS = {
    "compat": "modern_spelling tower_values whole_steps ← tower_context tower_variables ← tower_strategy v1 ← towers",
    "communicators": "core ← communicator ring threads ← gpu shm ← bootstrap",
    "cli": (
        "dashboard data_dispatcher demo digits findings join lab_versions whole_files "
        "← data_worker doctor machine software working_copy ← lab ← course guide_site ← docs"
    ),
    "dashboards": (
        "address aside connections dask_pages pace recordings sources ← gate pane target ← serving shell "
        "← dashboard page"
    ),
    "data": (
        "context cost seeds spec ← options rebatch structure ← stacking ← tables ← failing meter provenance "
        "← blocks ← background ← passes ← stage ← describe explanation sources ← stages ← fold stored "
        "← constructors iterator methods "
        "← dataset ← readers ← formats ← sharding ← service ← exports ← experimental"
    ),
    "distribute": (
        "arrays cluster_resolver contexts copied_by_reference function identity partitioners strategy_description "
        "value_context ← described_strategy values ← placement_log ← input variables ← replica servers "
        "← server_optimizers strategies ← coordinator ← default experimental"
    ),
    "runtime": (
        "placement_text restorer user_code ← cluster_in_use comm process ← layout metrics replica shipping "
        "← traced ← worker ← deploy ← driver joining partitions services ← cluster ← attach scheduler_pages "
        "← connect_cluster"
    ),
    "server": (
        "channels frames layout_names limits mirror rates summary watched_runs worker_options "
        "← job_link publisher recorded ← announcing clusters ← session workers ← client_socket "
        "← guide handlers ← extension"
    ),
    "telemetry": (
        "added clocks cost_model dataframe events formatting limits records ← told ← snapshot ← delta recording "
        "← feed ← verdicts ← export runs"
    ),
    "ui": (
        "render ← cells models progress transfers ← widgets ← cluster field_terms inspect layouts ← sharding "
        "← formatters ← report ← collectives ← magics runs ← notebook"
    ),
}
"""Within these folders, too, each room (a folder, or a file beside them) uses those before it only.

Imports for type checkers alone are not looked at here.
"""
TOP = RANK["cli"]
"""From here on everything may be used, also the public surface of the package."""

ONE_PLACE_ONLY = {"cupy": "backends/cupy", "jax": "backends/jax", "torch": "backends/torch"}
"""Array libraries, and how the names of the files begin that import them."""


class _WithoutTypes(ast.NodeTransformer):
    """Leaves out imports that are only for type checkers."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def imports(path: Path, types: bool = True, members: bool = False) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each import, those inside functions and literal `import_module`s included.

    Args:
      path: The path of the file.
      types: Whether to give what only type checkers import, too.
      members: Whether to give `a.b.c`, not `a.b`, for `from a.b import c`.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    if not types:
        tree = _WithoutTypes().visit(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom(level=0, module="workbench"):
                yield from ((node.lineno, f"workbench.{alias.name}") for alias in node.names)
            case ast.ImportFrom(level=0) if members:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            case ast.ImportFrom(level=0):
                yield node.lineno, node.module or ""
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield node.lineno, name
            case ast.ImportFrom():
                yield node.lineno, ".relative"


def every_import() -> Iterator[tuple[str, int, str]]:
    """File (relative to the package), line and name of each import in the package but its surface."""
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in (".py", ".pyi") and path.with_suffix(".py") != PACKAGE / "__init__.py":
            yield from ((str(path.relative_to(PACKAGE)), line, name) for line, name in imports(path))


def subject(dotted: str) -> str:
    """The folder or file of the package that `workbench.a.b` belongs to: a."""
    _, _, rest = dotted.partition(".")
    part = rest.partition(".")[0]
    return part if part in RANK else "workbench"


def test_every_part_of_the_package_has_its_layer() -> None:
    parts = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }

    assert parts - {"__init__"} == RANK.keys() - {"__version__", "workbench"}


def test_the_layers_are_drawn_as_they_are() -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = text.partition("## Layers")[2].split("```")[1].replace("\n", " ")

    assert [set(layer.split()) for layer in drawn.split("←")] == [
        {name for name in layer if not name.startswith("__")} for layer in LAYERS[:-1]
    ]


def test_imports_go_from_a_layer_to_those_before_it() -> None:
    wrong = []
    for file, line, name in every_import():
        if name.split(".")[0] != "workbench":
            continue
        importer = RANK[Path(file).parts[0].removesuffix(".py")]
        if RANK[subject(name)] > importer and importer < TOP:
            wrong.append(f"{file}:{line} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("folder", ROOMS)
def test_imports_go_from_a_room_to_those_before_it(folder: str) -> None:
    rank = {name: rank for rank, layer in enumerate(ROOMS[folder].split("←")) for name in layer.split()}
    wrong = []
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        room = path.relative_to(PACKAGE / folder).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for line, name in imports(path, types=False):
            target = name.removeprefix(f"workbench.{folder}.").partition(".")[0]
            if name.startswith(f"workbench.{folder}.") and target != room and rank[target] >= rank[room]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert wrong == []


def files_used(path: Path, types: bool) -> set[Path]:
    """The files of the package that a file imports, or names of which it imports."""
    found = set()
    stub = path.with_suffix(".pyi")  # what a package imports when its names are used
    uses = [
        *imports(path, types, members=True),
        *(imports(stub, members=True) if types and stub.is_file() else ()),
    ]
    for _, name in uses:
        parts = name.split(".")
        for place in (parts, parts[:-1]):  # the last part may be a name in a file
            file = PACKAGE.parent.joinpath(*place)
            if known := next(
                (x for x in (file.with_suffix(".py"), file / "__init__.py") if x.is_file()), None
            ):
                found.add(known)
                break
    return found - {path, PACKAGE / "__init__.py"}


def in_circles(used: dict[Path, set[Path]]) -> dict[str, list[str]]:
    """The files that are in a circle of uses, or lead into one, and what they use of those."""
    while leaves := {path for path, files in used.items() if not files & used.keys()}:
        used = {path: files for path, files in used.items() if path not in leaves}
    root = PACKAGE.parent
    return {
        str(path.relative_to(root)): sorted(str(x.relative_to(root)) for x in files & used.keys())
        for path, files in used.items()
    }


@pytest.mark.parametrize("types", [False, True], ids=["call-time", "types"])
def test_no_file_uses_one_that_uses_it(types: bool) -> None:
    used = {
        path: files_used(path, types) for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"
    }

    assert in_circles(used) == {}


@pytest.mark.skipif(
    not TYPESCRIPT.is_dir(), reason="the sources of the views are not here: installed without them"
)
def test_no_typescript_file_uses_one_that_uses_it() -> None:
    files = {path for path in TYPESCRIPT.rglob("*") if path.suffix in (".ts", ".tsx")}
    by_name = {path.with_suffix("") if path.stem != "index" else path.parent: path for path in files}
    used = {
        path: {
            by_name[target]
            for name in _TYPESCRIPT_IMPORT.findall(path.read_text(encoding="utf-8"))
            if (target := (path.parent / name).resolve()) in by_name
        }
        for path in files
    }

    assert sum(map(len, used.values())) > len(files)
    assert in_circles(used) == {}


def test_a_folder_has_some_twenty_files() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    sizes = {str(folder.relative_to(PACKAGE)): len(list(folder.glob("*.py"))) for folder in folders}

    assert {folder: size for folder, size in sizes.items() if size > 24} == {}


def test_imports_are_absolute() -> None:
    assert [f"{file}:{line}" for file, line, name in every_import() if name == ".relative"] == []


def test_only_the_runtime_imports_distributed() -> None:
    users = {file for file, _, name in every_import() if name.split(".")[0] in ("distributed", "dask")}

    assert {file for file in users if not file.startswith("runtime/")} == set()


def test_array_libraries_are_imported_in_their_own_files_only() -> None:
    wrong = [
        f"{file}:{line} imports {name}"
        for file, line, name in every_import()
        if not file.startswith(ONE_PLACE_ONLY.get(name.split(".")[0].replace("cupyx", "cupy"), file))
    ]
    assert wrong == []
