"""The dashboard: the views in a browser page of its own, for a running job or a recorded run, without a notebook.

    job ──► Unix socket ──► JobLink ─┐                         ┌──► Pane (a view) ──┐
    run.parquet ───────► RecordedRun ┴─► Source ──► Page ──────┴──► Shell (the bar) ┴──► Gate ──► browser

The side of the job, and `JobLink`, are those of the Jupyter server (`workbench.server`); the views are those of
notebooks and JupyterLab. Only `pane.py`, `shell.py`, `page.py` and `serving.py` import Panel.
"""
