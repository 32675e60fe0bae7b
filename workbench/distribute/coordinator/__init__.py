"""The coordinator: functions that the notebook schedules run on whichever worker is free.

    schedule ──► CallQueue ──► Lane (a thread of the notebook per worker) ══► WorkerSide (in the worker's process)
                    ▲            takes some calls, sends them in one frame          runs them one by one
                    └──────────── results, errors; calls of a lost worker ◄──────────────┘

A function that was lost with its worker, or reached a parameter server that was being restored, returns to the front of
the queue. It again updates variables under the same stream and number (`servers/streams.py`), so updates of its first
run are not applied twice.
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
