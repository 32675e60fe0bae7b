"""What a host tells the driver of its steps, and that nothing is kept of those that were told."""

from __future__ import annotations

import threading
from typing import Any

from tests.runtime.conftest import Run
from workbench.runtime.comm.messages import Message
from workbench.runtime.replica.env import ReplicaEnv
from workbench.runtime.worker.completions import Completions
from workbench.runtime.worker.step_reports import StepTallies


class SlowLink:
    """Notes what is sent; `send_all` first waits to be let go on."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.sending = threading.Event()
        self.go_on = threading.Event()

    def send(self, message: Message, body: bytes | None = None) -> None:
        self.sent.append(message)

    def send_all(self, messages: list[Message]) -> None:
        self.sending.set()
        assert self.go_on.wait(30)
        self.sent += messages


def test_nothing_overtakes_what_is_being_sent() -> None:
    link = SlowLink()
    completions = Completions(link)  # type: ignore[arg-type]
    completions.more_queued = True
    completions.complete((1,))
    completions.more_queued = False
    flushing = threading.Thread(target=completions.flush)
    flushing.start()
    assert link.sending.wait(30)
    following = threading.Thread(target=lambda: (completions.complete((2,)), completions.send((3,))))
    following.start()
    following.join(0.2)  # it has to wait, and would otherwise have finished by now
    link.go_on.set()
    for thread in (flushing, following):
        thread.join(30)

    assert link.sent == [(1,), (2,), (3,)]


def _tallies(env: ReplicaEnv) -> int:
    import gc

    return sum(len(each._tallies) for each in gc.get_objects() if type(each) is StepTallies)


def test_steps_that_merged_leave_nothing_behind(run_any: Run) -> None:
    def program(env: ReplicaEnv) -> Any:
        return env.merge(None)

    # Workers that are threads share this process, where other tests may have left some.
    before = max(run_any(_tallies).values())
    for _ in range(3):
        run_any(program, on_merge=lambda *_: 1)

    # Replicas of one worker run this step together; the first to come count for them.
    assert max(run_any(_tallies).values()) <= before + 1
