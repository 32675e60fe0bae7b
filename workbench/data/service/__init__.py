"""The data service: pipelines run on data workers, and any number of consumers share their elements.

A *dispatcher* manages datasets, jobs and workers, and holds no elements. A *job* is one pass over a dataset by all of
its consumers. Its elements come in *lanes*: the stream of elements that one worker makes. A lane gets *splits* of the
source by number, so a repeated request for split 3 of a lane returns the same one; and the elements of a lane are
numbered. A consumer acknowledges elements by these numbers before it delivers them, and delivers only those that the
dispatcher accepts. So a lane can be computed again, on another worker or even on two at once, and each element still
arrives once.

Consumers take what is ready; or read in rounds, in which each takes an element of the same lane (`consumer/rounds.py`);
or belong to trainers, each of which gets everything (`lanes/window_shelf.py`).

    consumer ── job, view, ack ──► dispatcher (journal) ◄── tasks, deal, end ── worker (lanes)
        └──────────────────────── fetch ────────────────────────────────────────►┘
"""

from __future__ import annotations

from workbench import lazy_names

__getattr__, __dir__ = lazy_names.attach(__name__)
