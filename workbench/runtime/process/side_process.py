"""A process that does a part of this one's work: forked from the same server, it ends with this one."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from typing import Final

from workbench import forks
from workbench.runtime.process.fork_server import server, signed_number
from workbench.runtime.process.process_state import process_state

_ATTEMPTS: Final = 3


class SideProcess:
    """Calls a function of workbench in a new process, with one end of a socket that has its other end here.

    The socket preserves message boundaries and carries descriptors. The function must return when the socket ends:
    after `close`, or when this process ends in any way.

    Attributes:
      pid: The number of the process.
      line: This end of the socket.
    """

    def __init__(self, function: str) -> None:
        """Starts the process.

        Args:
          function: "module:function"; it is called with the descriptor of its end.

        Raises:
          ChildProcessError: if it cannot be started.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._start(function)
                return
            except (EOFError, BrokenPipeError, TimeoutError) as error:  # the server has ended, or is stopped
                server.stop()
                if attempt == _ATTEMPTS - 1:
                    raise ChildProcessError(
                        f"no process could be forked for {function}: the server ended each time"
                    ) from error

    def _start(self, function: str) -> None:
        self._status, its_status = os.pipe()
        self.line, its_line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with its_line:
                server.request([its_status, its_line.fileno()], function.encode())
                os.close(its_status)
                its_status = -1
            self.pid = server.pid(self._status)
        except BaseException:
            self.line.close()
            os.close(self._status)
            if its_status >= 0:
                os.close(its_status)
            raise
        forks.descriptor(self.line)

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped it, so that it does nothing until another signal continues it."""
        return process_state(self.pid) == "T"

    def kill(self) -> None:
        """Ends it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def ending(self, within_seconds: float) -> str:
        """How it ended, such as "by signal SIGKILL"; "" if it does not end in time, or the reason is unknown."""
        answer = select.poll()
        answer.register(self._status, select.POLLIN)
        try:
            if self._status < 0 or not answer.poll(1000 * within_seconds):
                return ""
            code = signed_number(self._status)
        except (OSError, EOFError):  # the server is gone
            return ""
        return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    def close(self) -> None:
        """Lets it end. Idempotent."""
        self.line.close()
        if self._status >= 0:
            os.close(self._status)
            self._status = -1
