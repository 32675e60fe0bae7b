"""Dumps: the result of each operation, written to a folder for later inspection.

`session.py` starts and ends a dump in the notebook; `recording.py` records a thread's operations; `watched.py` makes
NumPy report them, and `compiled.py` makes compiled functions return them; `dump_file.py` keeps the newest and writes
them; `reader.py` reads the folder.
"""
