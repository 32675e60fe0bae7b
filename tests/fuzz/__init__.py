"""Readers get damaged input by the million, in a process that may not take more than its memory and its time.

    python -m tests.fuzz --reader tfrecord --cases 1000000 --seed 1
    python -m tests.fuzz --reader tfrecord --case 4711 --seed 1     # one case again, here, with its traceback

A case follows from seed and number alone. What is found: an exception that is no `WorkbenchError`, data that differ
from what a reference reader finds, a process that ends, hangs or wants too much memory.
"""
