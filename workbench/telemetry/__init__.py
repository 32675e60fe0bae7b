"""What happened in a run: records of collectives and events, from the replica's ring to tables and files.

Pure: it starts no thread, opens no socket and does not depend on Dask. `runtime` feeds it.

    Ring (a replica writes) ─ drain ─► batch (Arrow IPC) ─► Feed (folds) ─► Snapshot ─► views
                                                       └──► Recorder ─► Parquet ─► open_run ─► Run
"""
