"""`wb.run_cell`: code on every replica, in namespaces that last."""

from __future__ import annotations

import doctest
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import (
    CaptureError,
    CollectiveMismatch,
    FailedPreconditionError,
    InvalidArgumentError,
    WorkbenchError,
)
from workbench.ui.cells import replica_cells
from workbench.ui.cells.grouped_outputs import grouped
from workbench.ui.cells.replica_cells import only_strategy, parsed_replicas
from workbench.ui.cells.replica_session import Outcome


@pytest.fixture
def fresh(cluster: wb.Cluster) -> wb.MirroredStrategy:
    """A strategy whose replicas have run nothing."""
    return wb.MirroredStrategy()


def results(outputs: replica_cells.CellOutputs) -> list[str]:
    assert outputs.error is None
    return [outcome.result for outcome in outputs.outcomes]


def test_the_examples_hold() -> None:
    assert doctest.testmod(replica_cells).failed == 0


def test_every_replica_has_a_namespace_that_the_next_cell_finds(fresh: wb.MirroredStrategy) -> None:
    wb.run_cell("x = 10 * ctx.replica_id_in_sync_group\ndef twice(): return 2 * x", fresh)

    assert results(wb.run_cell("x += 1; twice()", fresh)) == ["2", "22"]


def test_two_strategies_do_not_share_namespaces(fresh: wb.MirroredStrategy) -> None:
    wb.run_cell("x = 1", fresh)
    outputs = wb.run_cell("'x' in globals()", wb.MirroredStrategy())

    assert results(outputs) == ["False", "False"]


def test_only_the_chosen_replicas_run(fresh: wb.MirroredStrategy) -> None:
    wb.run_cell("x = 0", fresh)
    outputs = wb.run_cell("x = 5", fresh, [1])

    assert [outcome.replica for outcome in outputs.outcomes] == [1]
    assert results(wb.run_cell("x", fresh)) == ["0", "5"]


def test_a_semicolon_hides_the_value_of_the_last_line(fresh: wb.MirroredStrategy) -> None:
    assert results(wb.run_cell("x = 'ü'; x ;", fresh)) == ["", ""]
    assert results(wb.run_cell("y = 3; (x)", fresh)) == ["'ü'", "'ü'"]


def test_a_question_that_nobody_can_answer_is_refused_with_what_to_do(fresh: wb.MirroredStrategy) -> None:
    outputs = wb.run_cell("name = input('your name? ')", fresh)

    assert isinstance(outputs.error, FailedPreconditionError)
    assert "input('your name? '): nobody can answer on a replica" in outputs.outcomes[1].error
    assert results(wb.run_cell("input = len; input('abc')", fresh)) == ["3", "3"]


def test_what_each_replica_prints_is_kept_apart_and_does_not_show_elsewhere(
    fresh: wb.MirroredStrategy, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = wb.run_cell(
        "import sys\nprint('out', ctx.replica_id_in_sync_group)\nprint('err', file=sys.stderr)", fresh
    )

    assert [outcome.stdout for outcome in outputs.outcomes] == ["out 0\n", "out 1\n"]
    assert [outcome.stderr for outcome in outputs.outcomes] == ["err\n", "err\n"]
    assert "out" not in capsys.readouterr().out


def test_cells_use_collectives_and_variables(fresh: wb.MirroredStrategy) -> None:
    outputs = wb.run_cell(
        "import numpy as np\nfloat(ctx.all_reduce('sum', np.float32(1 + ctx.replica_id_in_sync_group)))",
        fresh,
    )

    assert results(outputs) == ["3.0", "3.0"]


def test_an_error_on_one_replica_leaves_all_namespaces_as_they_are(fresh: wb.MirroredStrategy) -> None:
    wb.run_cell("kept = 'before'; me = ctx.replica_id_in_sync_group", fresh)
    outputs = wb.run_cell("\nkept = 'assigned'\nif me == 1:\n    1 / 0\nkept = 'after'", fresh)
    healthy, broken = outputs.outcomes

    assert isinstance(outputs.error, ZeroDivisionError)
    assert (healthy.error, broken.error) == ("", "ZeroDivisionError: division by zero")
    assert "line 4, in <module>\n    1 / 0" in broken.traceback
    assert "replica_session" not in broken.traceback
    assert results(wb.run_cell("me, kept", fresh)) == ["(0, 'after')", "(1, 'assigned')"]


def test_what_is_pushed_is_there_and_distributed_values_are_dealt_out(fresh: wb.MirroredStrategy) -> None:
    ranks = fresh.run(lambda: wb.distribute.get_replica_context().replica_id_in_sync_group)

    assert results(wb.run_cell("plain, ranks", fresh, push={"plain": 7, "ranks": ranks})) == [
        "(7, 0)",
        "(7, 1)",
    ]
    assert results(wb.run_cell("ranks", fresh)) == ["0", "1"]


def test_what_a_failed_cell_did_to_variables_is_undone(fresh: wb.MirroredStrategy) -> None:
    with fresh.scope():
        total = wb.Variable(1.0, name="total", aggregation=wb.VariableAggregation.MEAN)
    assert wb.run_cell("_ = total.assign(2.0)", fresh, push={"total": total}).error is None
    assert float(total.read_value()) == 2.0

    outputs = wb.run_cell(
        "_ = total.assign(3.0)\nif ctx.replica_id_in_sync_group: raise KeyError('x')", fresh
    )

    assert isinstance(outputs.error, KeyError)
    assert float(total.read_value()) == 2.0


def test_the_others_of_a_collective_are_told_who_failed(fresh: wb.MirroredStrategy) -> None:
    outputs = wb.run_cell(
        "import numpy as np\n"
        "if ctx.replica_id_in_sync_group == 0:\n"
        "    raise KeyError('a')\n"
        "ctx.all_reduce('sum', np.ones(3))",
        fresh,
    )
    first, second = outputs.outcomes

    assert isinstance(outputs.error, KeyError)
    assert first.error == "KeyError: 'a'"
    assert "replica 0" in second.error
    assert results(wb.run_cell("float(ctx.all_reduce('sum', np.ones(3)).sum())", fresh)) == ["6.0", "6.0"]


def test_a_collective_of_some_replicas_only_is_an_error_at_once(fresh: wb.MirroredStrategy) -> None:
    outputs = wb.run_cell("import numpy as np\nctx.all_reduce('sum', np.ones(3))", fresh, [0])

    assert isinstance(outputs.error, CollectiveMismatch)
    assert "replica 1 finished the step after 0 collectives" in str(outputs.error)


def test_a_replica_that_was_replaced_is_said_to_have_an_empty_namespace(fresh: wb.MirroredStrategy) -> None:
    wb.run_cell("x = 3", fresh)
    lost = wb.run_cell("import os\nif ctx.replica_id_in_sync_group == 1:\n    os._exit(3)", fresh)
    after = wb.run_cell("'x' in globals()", fresh)

    assert isinstance(lost.error, WorkbenchError)
    assert [outcome.ran for outcome in lost.outcomes] == [True, False]
    assert after.forgotten == (1,)
    assert results(after) == ["True", "False"]
    assert "! replica 1 was replaced since the last cell: its namespace is empty" in repr(after)


def test_an_interrupt_keeps_outputs_and_namespaces(fresh: wb.MirroredStrategy, tmp_path: Path) -> None:
    begun = [tmp_path / "0", tmp_path / "1"]

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while not all(path.exists() for path in begun) and time.monotonic() < deadline:
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    outputs = wb.run_cell(
        "print('so far')\nx = 4\nopen(f'{folder}/{ctx.replica_id_in_sync_group}', 'w').close()\n"
        "while True: pass",
        fresh,
        push={"folder": str(tmp_path)},
    )
    waiting.join(30)

    assert isinstance(outputs.error, KeyboardInterrupt)
    assert [outcome.stdout for outcome in outputs.outcomes] == ["so far\n", "so far\n"]
    assert results(wb.run_cell("x", fresh)) == ["4", "4"]


def test_code_that_is_no_python_is_sent_nowhere(fresh: wb.MirroredStrategy) -> None:
    step = fresh.group.committed_step
    with pytest.raises(SyntaxError, match="invalid syntax"):
        wb.run_cell("x = = 1", fresh)

    assert fresh.group.committed_step == step


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        ([7], "there is no replica 7: the strategy has replicas 0 to 1"),
        ([-1, 0], "there is no replica -1"),
        ([], "no replica was chosen"),
        (0, r"replicas are their numbers, such as \[0, 2\], or None for all; got 0"),
        ("01", "replicas are their numbers, .* got '01'"),
    ],
)
def test_a_replica_that_is_not_there_is_refused(fresh: wb.MirroredStrategy, replicas: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        wb.run_cell("1", fresh, replicas)


def test_what_cannot_travel_is_refused_before_anything_runs(fresh: wb.MirroredStrategy) -> None:
    with pytest.raises(CaptureError, match=r"kwargs\['push'\]\['lock'\] .* cannot be sent to the workers"):
        wb.run_cell("1", fresh, push={"lock": threading.Lock()})


def test_what_has_no_replicas_is_refused(fresh: wb.MirroredStrategy) -> None:
    with pytest.raises(InvalidArgumentError, match="on the replicas of a strategy"):
        wb.run_cell("1", wb.distribute.get_strategy())
    with pytest.raises(InvalidArgumentError, match="group must be one of replica, stream, diff, got 'both'"):
        wb.run_cell("1", fresh, group="both")  # type: ignore[arg-type]


def test_replicas_are_written_as_numbers_and_ranges() -> None:
    assert parsed_replicas([]) is None
    assert parsed_replicas(["0,2", "4-6"]) == (0, 2, 4, 5, 6)
    with pytest.raises(InvalidArgumentError, match="there is no replica in 3-1: write 1-3"):
        parsed_replicas(["3-1"])
    for wrong in ("a", "1-", "-1", "1:3"):
        with pytest.raises(InvalidArgumentError, match="replicas are numbers such as 2, 0,2 or 0-3"):
            parsed_replicas([wrong])


def test_the_strategy_is_the_only_one_or_the_one_that_is_named(fresh: wb.MirroredStrategy) -> None:
    other = wb.MirroredStrategy()

    assert only_strategy({"a": fresh, "again": fresh, "_": other, "b": 3}) is fresh
    assert only_strategy({"a": fresh, "b": other}, "b") is other
    with pytest.raises(FailedPreconditionError, match="several strategies in this notebook, a, b"):
        only_strategy({"a": fresh, "b": other})
    with pytest.raises(FailedPreconditionError, match="there is no strategy in this notebook"):
        only_strategy({"a": wb.distribute.get_strategy(), "b": 3})
    with pytest.raises(InvalidArgumentError, match="no strategy of that name"):
        only_strategy({"a": fresh}, "c")


def test_a_strategy_of_a_closed_cluster_is_named() -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        closed = wb.MirroredStrategy()
    with pytest.raises(FailedPreconditionError, match="the cluster of a was closed, and there is no other"):
        only_strategy({"a": closed})


OUTCOMES = (
    Outcome(0, True, "same\n", "", "1"),
    Outcome(1, True, "same\n", "", "2"),
    Outcome(2, True, "same\n", "", "1"),
    Outcome(3, True, "", "odd\n", "", "KeyError: 'k'", "Traceback\nKeyError: 'k'"),
    Outcome(4),
)


def test_outputs_by_replica_have_a_part_each() -> None:
    assert [title for title, _ in grouped(OUTCOMES, "replica")] == [f"replica {n}" for n in range(5)]
    assert grouped(OUTCOMES, "replica")[3][1] == "odd\nTraceback\nKeyError: 'k'"
    assert "did not run" in grouped(OUTCOMES, "replica")[4][1]


def test_outputs_by_stream_put_the_same_together() -> None:
    assert grouped(OUTCOMES, "stream")[:5] == [
        ("stdout of replicas 0, 1 and 2", "same"),
        ("stderr of replica 3", "odd"),
        ("result of replicas 0 and 2", "1"),
        ("result of replica 1", "2"),
        ("error of replica 3", "Traceback\nKeyError: 'k'"),
    ]
    assert grouped([Outcome(0, True), Outcome(1, True)], "stream") == [("replicas 0 and 1: no output", "")]


def test_titles_name_each_replica_however_many_say_the_same() -> None:
    same = [Outcome(replica, True, stdout="same") for replica in range(8)]
    silent = [Outcome(replica, True) for replica in range(8)]

    assert grouped(same, "stream") == [("stdout of replicas 0, 1, 2, 3, 4, 5, 6 and 7", "same")]
    assert grouped(silent, "stream") == [("replicas 0, 1, 2, 3, 4, 5, 6 and 7: no output", "")]
    assert grouped(same, "diff")[1:] == [("replicas 1, 2, 3, 4, 5, 6 and 7: the same", "")]


def test_outputs_as_differences_show_only_what_differs() -> None:
    assert grouped(OUTCOMES[:3], "diff") == [
        ("replica 0", "same\n1"),
        ("replica 2: the same", ""),
        ("replica 1, compared with 0", " same\n-1\n+2"),
    ]


def test_html_shows_what_was_printed_as_text(fresh: wb.MirroredStrategy, safe_text) -> None:
    drawn = safe_text(wb.run_cell("print('<script>alert(1)</script>')", fresh)._repr_html_())

    assert "<script>alert(1)</script>" in drawn.text
    assert "script" not in drawn.tags


def test_html_has_a_tab_for_each_replica_and_opens_the_one_that_failed(fresh: wb.MirroredStrategy) -> None:
    drawn = wb.run_cell("assert ctx.replica_id_in_sync_group == 0\nprint('fine')", fresh)._repr_html_()

    names = re.findall(r"<label [^>]*>(.*?)</label>", drawn)
    opened = re.findall(r"<input [^>]*?id=\"\S+-(\d+)\"( checked)?>", drawn)
    assert names == ["replica 0", "✖ replica 1"]
    assert opened == [("0", ""), ("1", " checked")]
    assert drawn.startswith('<div style="display:block;')


def test_html_of_other_groupings_and_of_one_replica_has_no_tabs(fresh: wb.MirroredStrategy) -> None:
    for outputs in (wb.run_cell("1", fresh, [1]), wb.run_cell("1", fresh, group="diff")):
        assert "<label" not in outputs._repr_html_()


def test_threads_of_one_process_are_kept_apart() -> None:
    before = sys.stdout
    with wb.connect(replicas=4, processes=False, replace=True):  # frees what earlier tests keep
        outputs = wb.run_cell(
            "for n in range(3): print(ctx.replica_id_in_sync_group, n)", wb.MirroredStrategy()
        )

    assert [outcome.stdout for outcome in outputs.outcomes] == [f"{r} 0\n{r} 1\n{r} 2\n" for r in range(4)]
    assert sys.stdout is before
