"""VariableServer: a store and its journal behind a service; what runs in the process of a parameter server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import faults
from workbench.distribute.servers.journal import Journal, sweep
from workbench.distribute.servers.shard_store import ShardStore
from workbench.runtime.services.frames import Array, Fields
from workbench.runtime.services.service import Reply, ServiceAddress, start_service

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv


class VariableServer:
    """Answers for one parameter server."""

    def __init__(self, folder: Path, former: Path | None) -> None:
        """Begins a journal.

        Args:
          folder: Where.
          former: The folder of the server whose place this one takes. It may not have noticed yet that it has ended,
            so nothing is written there.
        """
        sweep(str(folder.parent))
        self._journal = Journal(folder)
        (folder / "process").write_text(str(os.getpid()))
        self._store = ShardStore()
        if former is not None:
            before = Journal(former)
            for change in before.changes():
                self._store.replay(*change)
            self._journal.begin_anew(self._store.contents())
            before.remove()
        self._store.record = self._recorded

    def answer(self, fields: Fields, arrays: list[Array]) -> Reply:
        """See `Answers.answer`."""
        reply = self._store.answer(fields, arrays)
        faults.fault("server.before_reply")
        return reply

    def close(self) -> None:
        """The strategy was closed, or its notebook has ended: nobody needs the variables any more."""
        self._journal.remove()

    def _recorded(self, fields: Fields, arrays: list[Array]) -> None:
        """Writes a change that is about to be made."""
        if self._journal.outgrown(self._store.nbytes):
            self._journal.begin_anew(self._store.contents())
        self._journal.append((fields, arrays))
        faults.fault("server.after_journal")


def start_server(env: ReplicaEnv, name: str, folder: str, former: str | None) -> ServiceAddress:
    """Program of the process that becomes a parameter server."""
    server = VariableServer(Path(folder), None if former is None else Path(former))
    return start_service(name, server)
