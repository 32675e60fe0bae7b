"""The notebooks of the course run with their solutions in place, and refuse answers that are wrong."""

from __future__ import annotations

import importlib.util
import itertools
import re
from typing import Any

import pytest

from tests.notebooks import test_collectives
from tests.notebooks.conftest import OutputsOf
from tests.notebooks.executed import ROOT, cells_with_outputs, errors_with, stored
from workbench.ui.layouts import LAYOUTS
from workbench.ui.models.messages import MODELS

QUICKSTART = "01_quickstart.ipynb"
SHARDING = "02_data_sharding.ipynb"
VARIABLES = "04_variables_and_drift.ipynb"
DEBUGGING = "05_debugging.ipynb"
FRAMEWORKS = "06_bring_your_framework.ipynb"
RUNS = "07_recorded_runs.ipynb"
TPU = "08_tpu_emulated.ipynb"
SERVERS = "09_parameter_servers.ipynb"
TERMINALS = "10_several_terminals.ipynb"
COURSE = [SHARDING, VARIABLES, DEBUGGING, RUNS, SERVERS, TERMINALS]
"""Those of which the outputs are looked at here; the others have tests of their own."""
BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"

PLAUSIBLE: dict[str, dict[str, tuple[str, str]]] = {
    QUICKSTART: {
        "share": ("1437 % 128", "0"),
        "count-right": ('replica.all_reduce("sum", (guess == y).sum())', "(guess == y).sum()"),
    },
    SHARDING: {
        "batch-size": ("batch_size = 120", "batch_size = 126"),
        "rows": ("(1, 1, 0, 0)", "(2, 0, 0, 0)"),
        "global-mean": ("return total / count", 'return ctx.all_reduce("mean", x.mean())'),
        "policy": ("policies.DATA", "policies.OFF"),
        "groups": ("rows_per_group = 30", "rows_per_group = 15"),
        "faster": ("num_parallel_calls=auto", "num_parallel_calls=1"),
        "killed": ("workers[0].kill()", "workers[0].poll()"),
    },
    VARIABLES: {
        "aggregation": ('aggregation="MEAN"', 'aggregation="ONLY_FIRST_REPLICA"'),
        "count": ("np.bincount(y, minlength=10)", "np.bincount(y[:9], minlength=10)"),
        "repaired": ("gradients = ctx.all_reduce", "ctx.all_reduce"),
        "same-noise": ("default_rng(number)", "default_rng(0)"),
    },
    DEBUGGING: {
        "careful": ("replica_with_nan = 2", "replica_with_nan = 1"),
        "late": ("late_replica = 0", "late_replica = 2"),
        "logging-repaired": ('mean = ctx.all_reduce("mean", loss)', "mean = loss"),
        "retry": ("except wb.errors.ReplicaLost", "except Exception"),
    },
    FRAMEWORKS: {
        "half": ("gradient.astype(np.float16)", "gradient"),
        "decay": ("strength / 2", "strength"),
    },
    RUNS: {
        "protected": ("error.code", "401"),
        "traffic": ('records[records["replica"] == 0]', "records"),
        "kept-waiting": ("idxmax", "idxmin"),
        "folder": ('wb.dashboard("runs")', 'wb.dashboard("runs/slow.parquet")'),
    },
    SERVERS: {
        "divided": ("FixedShardsPartitioner(2)", "FixedShardsPartitioner(1)"),
        "batch": ("default_rng(number)", "default_rng()"),
        "step": ("            (wb.IndexedSlices(d_noise, noise), outputs),\n", ""),
        "due": ("batch(number)[0]", "batch(number)[1]"),
        "restored": ("manager.restore_or_initialize()", "manager.latest_checkpoint"),
    },
    TERMINALS: {
        "how-many": ("replicas = 2", "replicas = 3"),
        "where": ('.cluster_spec().task_address("worker", 0)', ".master()"),
        "counted": ("holds = succeeded", "holds = took_part"),
    },
    TPU: {
        "mask": ("(losses * real).sum()", "losses.sum()"),
        "branch": ("% 2 == 0", "% 2 == 1"),
    },
}
"""Of each exercise: a part of the solution, and what somebody might write instead."""

SAID = {
    "share-check": "look for `dropped` in section 7",
    "count-right-check": "3 collectives expected, 0 found",
    "batch-size-check": "there are parts of {",
    "rows-check": "rows per step and replica: expected",
    "global-mean-check": "is not finite on replica",
    "policy-check": "elements too many are read",
    "groups-check": "larger groups do, too: [30]",
    "faster-check": "one is fetched at a time",
    "killed-check": "worker 0 still works",
    "aggregation-check": "the mean of 10 and 11 is not [10. 10. 10.]",
    "count-check": "were counted, there are [143 146",
    "repaired-check": "'weights:0' is not in sync",
    "same-noise-check": "the noise is the same in every step",
    "careful-check": "who is named there?",
    "late-check": "look at the last column",
    "logging-repaired-check": "20 collectives expected, 10 found; they differ from number 2",
    "half-check": "all_reduce mean float32[2410]",
    "decay-check": "a loss of",
    "protected-check": "without it, it is not",
    "traffic-check": "separate: expected 2 per step with 2600 bytes",
    "kept-waiting-check": "was not the one that the others waited for",
    "folder-check": "is one file; name the folder",
    "retry-check": "only the loss of a replica is worth another try",
    "divided-check": "'vectors' has parts of [1000] rows, not two halves",
    "batch-check": "comes out different each time",
    "step-check": "rows of the batch have not changed in 'outputs'",
    "due-check": "words were met another number of times, such as",
    "restored-check": "the counter says 0 steps, the checkpoint was saved after 600",
    "how-many-check": "which of the three jobs computes?",
    "where-check": "is no task, worker 0 is at 127.0.0.1:",
    "counted-check": "how does `steps` combine what replicas add?",
    "mask-check": "from digit 256 on",
    "branch-check": "of 1 the cores make [-1.0, 1.0,",
}
"""Part of what the check tells about the wrong answer."""

BLOCK = re.compile(
    r"# Lab (?P<number>\d+): .+\n\n\* \*\*Goals\*\*: .+\.\n\* \*\*Prerequisites\*\*: (?P<needs>.+)\.\n"
    r"\* \*\*Time\*\*: (?P<minutes>\d+) minutes; all cells together run for about (?P<seconds>\d+) seconds\.\n\n"
)
"""How each lab begins."""

COLUMNS = 72
"""The longest line of code in a lab, which has half of the window beside its panes; as in `notebooks/ruff.toml`."""

EXERCISES = {name: list(plausible) for name, plausible in PLAUSIBLE.items()}
EXERCISES |= {test_collectives.NAME: list(test_collectives.PLAUSIBLE)}
"""The exercises of each notebook."""

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install -e '.[jax]'"
)


@pytest.fixture(scope="module", params=COURSE)
def ran(request: pytest.FixtureRequest, outputs_of: OutputsOf) -> tuple[str, dict[str, str]]:
    """A notebook's name and its outputs; it fails where a cell does."""
    return request.param, outputs_of(request.param)


def test_a_notebook_shows_what_its_texts_promise(ran: tuple[str, dict[str, str]]) -> None:
    name, outputs = ran
    promised = {
        SHARDING: {
            "mean": "replicas 1 and 3 got an empty batch",
            "files": r"22\s+22 8 8",
            "what-if": r"policy OFF .* 30 30 30 30, dup 60",
            "parquet": r"18\s+18 12 12",
            "columns": "{'label': array",
            "slow": r"map\(fetch\) takes (\d+|>99)\s% of the time: give it num_parallel_calls",
            "faster-check": r"fetched by \d+ threads",
            "panes": "<Layout 'data': .*input",
            "live": r"> map\(fetch\)[\s\S]*\(starving\)",
            "mended": r"> map\(fetch\) .* threads \(AUTOTUNE\)",
            "killed-check": "a complete epoch: 1440 digits, each once",
            "proof": "TFRecord: 60, as written: True\nParquet: 60, as written: True",
        },
        VARIABLES: {
            "drift": "diverged at step 0, .* first replica 1",
            "aggregation-check": "1 collective\n    1  all_reduce mean",
            "training-assert": "'weights:0' is not in sync: it diverged at step",
            "random": "diverged at step",
        },
        DEBUGGING: {
            "nan": "loss nan",
            "nan-check": "is not finite on replica 2",
            "slow": "all_reduce",
            "mismatch": "replica 0 barrier",
            "logging": "finished the step after 1 collective, replica 0 waits in all_reduce #2",
            "killed": "replica 1 .* was killed by SIGKILL",
            "killed-after": "the weights are those before the step: True",
            "log": "replica_lost",
        },
        RUNS: {
            "live": r"<Dashboard: http://127\.0\.0\.1:\d+/\?token=.*, live>",
            "record": r"separate  loss \d",
            "gone": "3 recorded runs in runs",
            "reopened": "run separate: 60 records",
            "compare": r"together \('\) compared with separate",
            "kept-waiting-check": "replica 2 kept the others waiting",
            "kept-waiting-look": "r2@a",
            "folder": "<Dashboard: .*, live>",
            "folder-check": "stopped",
            "share": "nranks 3",
        },
        SERVERS: {
            "divided-check": r"ps:0 (.|\n)* ps:1 ",
            "train": r"loss 6\.\d+ -> 3\.\d",
            "kill": r"worker:1 was killed, .*\nps:0 was killed, .*\nloss 3\.\d+ -> 2\.\d",
            "due-check": "600 steps and 614400 words: each counted once",
            "restored-check": r"\[334, 333, 333\] rows on the three servers",
            # Workers run at their own pace, so the nearest words differ between runs.
            "goon": r"-> 2\.\d+\n +two: .*three.*\n *finally: .*\b(try|clause)\b.*\n(.|\n)*1000 steps",
        },
        TERMINALS: {
            "terminals": "1 of 3 tasks, waiting for (.|\n)*all 3 tasks are there",
            "jobs": "chief CPU:0\nworker CPU:1\nps CPU:2",
            "ends": r"worker-0 was lost(.|\n)*replicas in each step: \[2, 2, 2, 1, .* 1\]",
            "back": "worker-0 has joined again",
            "grown": "replicas in the last step: 2",
            "counted-check": r"\d+ steps, each counted once",
            "end": "chief-0 leaves\n(the chief has ended the cluster\n){2}",
        },
    }

    broken = {id: outputs[id] for id, text in promised[name].items() if not re.search(text, outputs[id])}
    assert broken == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([needs_jax] if name in (FRAMEWORKS, TPU) else []),
                *([pytest.mark.thorough] if name in (FRAMEWORKS, SERVERS, TERMINALS) else []),
            ],
        )
        for name in PLAUSIBLE
    ],
)
def test_each_check_refuses_a_plausible_wrong_answer_and_says_why(name: str, tmp_path: Any) -> None:
    sources = {cell.id: cell.source for cell in stored(name).cells}
    answers = {}
    for exercise, (right, wrong) in PLAUSIBLE[name].items():
        assert right in sources[exercise]
        answers[exercise] = sources[exercise].replace(right, wrong)

    errors = errors_with(answers, name, tmp_path)

    checks = {f"{exercise}-check" for exercise in PLAUSIBLE[name]}
    assert set(errors) == checks
    for check in checks:
        assert errors[check].startswith("AssertionError: ")
        assert SAID[check] in errors[check]


@pytest.mark.parametrize("name", COURSE)
def test_a_notebook_is_stored_without_outputs(name: str) -> None:
    assert cells_with_outputs(name) == []


def test_every_notebook_has_exercises() -> None:
    assert sorted(EXERCISES) == sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("name", EXERCISES)
def test_exercises_have_the_form_that_nbgrader_reads(name: str) -> None:
    cells = stored(name).cells
    graded = {cell.id: cell.metadata["nbgrader"] for cell in cells if "nbgrader" in cell.metadata}
    assert [graded[id]["grade_id"] for id in graded] == list(graded)
    for cell in cells:  # including texts: nbgrader removes what is between the markers anywhere
        form = graded.get(cell.id, {"solution": False, "grade": False, "schema_version": 3})
        assert form["schema_version"] == 3
        assert cell.source.count(BEGIN) == cell.source.count(END)
        assert (BEGIN in cell.source) == form["solution"]
        if form["grade"]:
            assert (form["locked"], form["solution"], form["points"] > 0) == (True, False, True)
    exercises = [id for id, form in graded.items() if form["solution"]]
    assert exercises == EXERCISES[name]
    assert [id for id, form in graded.items() if form["grade"]] == [f"{id}-check" for id in exercises]
    order = [cell.id for cell in cells]
    assert all(order[order.index(id) + 1] == f"{id}-check" for id in exercises)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_lab_begins_with_goals_prerequisites_and_time_and_the_map_agrees(name: str) -> None:
    begins = BLOCK.match(stored(name).cells[0].source)
    text = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \| .+ \| (\d+|–) \| (\d+) \|$", text, re.MULTILINE)

    assert begins is not None
    assert row is not None
    needs = re.findall(r"\blab (\d+)", begins["needs"])
    assert int(begins["number"]) == int(name[:2])
    assert row.groups() == (needs[0] if needs else "–", begins["minutes"])
    assert all(int(lab) < int(name[:2]) for lab in needs)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_lab_brings_a_layout_of_panes_that_there_are(name: str) -> None:
    layout = stored(name).metadata["workbench"]["layout"]
    views = LAYOUTS[layout] if isinstance(layout, str) else _tabs(layout)

    assert views
    assert set(views) <= set(MODELS)


def _tabs(area: Any) -> list[str]:
    """The tabs of a written layout, as `readArea` in `extension/src/lab/layouts/layouts.ts` reads it."""
    if area == "others":
        return []
    return list(area["tabs"]) if "tabs" in area else [tab for part in area["parts"] for tab in _tabs(part)]


@pytest.mark.parametrize("name", EXERCISES)
def test_each_exercise_has_a_hint_above_it(name: str) -> None:
    cells = stored(name).cells
    above = {cell.id: before for before, cell in itertools.pairwise(cells) if cell.id in EXERCISES[name]}

    assert list(above) == EXERCISES[name]
    for text in above.values():
        assert text.cell_type == "markdown"
        assert re.search(r"<summary>Hint</summary>\n\n.+\n\n</details>$|\bHint: \w", text.source)


@pytest.mark.parametrize("name", EXERCISES)
def test_code_fits_half_the_width_of_a_screen_beside_panes(name: str) -> None:
    lines = [
        (cell.id, line)
        for cell in stored(name).cells
        if cell.cell_type == "code"
        for line in cell.source.split("\n")
    ]

    assert [(id, line) for id, line in lines if len(line) > COLUMNS] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_a_lab_announces_above_the_cell_that_it_ends_its_cluster(name: str) -> None:
    cells = stored(name).cells
    texts = [cell.source if cell.cell_type == "markdown" else "" for cell in cells]
    ends = [at for at, cell in enumerate(cells) if "cluster.close()" in cell.source and not texts[at]]

    assert ends
    for at in ends:
        assert re.search(r"\b(?:stops|ends|closes) (?:the|all) [^.]*(?:workers|cluster)", texts[at - 1]), (
            cells[at].id
        )
