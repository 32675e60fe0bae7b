"""Dumps: the result of each operation, written into a folder for later inspection.

`session.py` begins and ends one in the notebook; `recording.py` is where a thread's operations go; `watched.py` makes
NumPy tell of them, and `compiled.py` has compiled functions give them; `dump_file.py` keeps the newest and writes
them; `reader.py` reads the folder.
"""
