"""The dashboard: the views in a separate browser page, for a running job or a recorded run, without a notebook.

    job ──► Unix socket ──► JobLink ─┐                         ┌──► Pane (a view) ──┐
    run.parquet ───────► RecordedRun ┴─► Source ──► Page ──────┴──► Shell (the bar) ┴──► Gate ──► browser

The job's side and `JobLink` are shared with the Jupyter server (`workbench.server`), the views with notebooks and
JupyterLab. Only `pane.py`, `shell.py`, `page.py` and `serving.py` import Panel.
"""
