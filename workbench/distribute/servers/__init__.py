"""Parameter servers: processes that hold variables, which the notebook and all workers read and update.

    notebook ── create, read, update ──► server ps:0  (store, journal) ◄── read, gather, update ── worker 0
                                         server ps:1  (store, journal) ◄──────────────────────────  worker 1

A server applies each update once: an update carries its *stream* (a scheduled function or a client) and its number in
the stream. These identify an update that is sent again because its reply or the sending worker was lost. Before a
server answers, it writes the update to its journal, so a server that replaces a killed one has every answered update.
"""
