"""VariableServer: a store and its journal behind a service, in the process of a parameter server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import faults
from workbench.distribute.servers.journal import Journal, sweep
from workbench.distribute.servers.shard_store import ShardStore
from workbench.runtime.services.frames import Array, Fields
from workbench.runtime.services.service import Reply, ServiceAddress, Superseded, start_service

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv


class VariableServer:
    """Answers the requests to one parameter server."""

    def __init__(self, folder: Path, name: str = "a parameter server") -> None:
        """Takes over the journal in `folder` from the server that this one replaces, or creates one."""
        sweep(str(folder.parent))
        self._journal = Journal(folder)
        (folder / "process").write_text(str(os.getpid()))
        self._store = ShardStore(name=name)
        self._journal.take_over(self._store.replay, self._store.contents)
        faults.fault("server.taken_over")
        self._store.record = self._recorded

    def answer(self, fields: Fields, arrays: list[Array]) -> Reply:
        """See `Answers.answer`. Once superseded, it confirms only applied updates: other replies may be outdated."""
        reply = self._store.answer(fields, arrays)
        # An applied update is in the journal, whichever process has the journal now.
        if not reply[0].get("applied") and self._journal.superseded:
            raise Superseded("another process has taken the place of this server")
        if fields["method"] == "describe":
            reply[0].update(journal_folder=str(self._journal.folder), journal_bytes=self._journal.nbytes)
        faults.fault("server.before_reply")
        return reply

    def close(self) -> None:
        """Called when the strategy was closed or its notebook has ended, so that the variables are no longer needed."""
        self._journal.remove()

    def _recorded(self, fields: Fields, arrays: list[Array]) -> None:
        """Writes a change to the journal before it is made."""
        if self._journal.outgrown(lambda: self._store.nbytes):
            self._journal.begin_anew(self._store.contents())
        self._journal.append((fields, arrays))
        faults.fault("server.after_journal")


def start_server(env: ReplicaEnv, name: str, folder: str) -> ServiceAddress:
    """The program that makes a process a parameter server.

    Args:
      env: The replica that runs the program.
      name: Name of the service and of the journal.
      folder: Folder of the journal.
    """
    return start_service(name, VariableServer(Path(folder), name))
