"""A replica that stays in the user's code for long is looked at, and no other."""

from __future__ import annotations

import threading

from workbench.runtime.worker.lingering import Lingering

KEY = (1, 0)


def test_its_place_and_for_how_long_are_told_only_after_a_while() -> None:
    now = [0.0]
    lingering, ready, end = Lingering(lambda: now[0]), threading.Event(), threading.Event()

    def stays() -> None:
        ready.set()
        end.wait(30)

    thread = threading.Thread(target=stays)
    thread.start()
    try:
        assert ready.wait(30)
        assert thread.ident is not None
        found = []
        for seconds, position in ((0, (5, 0)), (0.9, (5, 0)), (12.2, (5, 0)), (12.3, (5, 1)), (13.0, (5, 1))):
            now[0] = seconds
            found.append(lingering.place(KEY, position, thread.ident))
    finally:
        end.set()
        thread.join(30)
    assert [bool(each) for each in found] == [False, False, True, False, False]
    assert found[2].startswith("test_lingering.py:")
    assert found[2].endswith(" in stays, for 12 s")


def test_a_thread_that_has_ended_is_nowhere() -> None:
    now = [0.0]
    lingering = Lingering(lambda: now[0])
    lingering.place(KEY, (0, 0), 1)
    now[0] = 60.0
    assert lingering.place(KEY, (0, 0), 1) == ""
