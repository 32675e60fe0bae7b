"""Parameter servers: processes that hold variables, which the notebook and all workers read and update.

    notebook ── create, read, update ──► server ps:0  (store, journal) ◄── read, gather, update ── worker 0
                                         server ps:1  (store, journal) ◄──────────────────────────  worker 1

A server applies each update once: an update carries the *stream* that it belongs to, a scheduled function or a
client, and its number there. One that is sent again, because its reply or the worker that had sent it was lost, is
known by these. Before a server answers, it writes the update to its journal, so a server that replaces a
killed one has every update that was answered.
"""
