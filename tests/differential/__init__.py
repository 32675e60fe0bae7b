"""Random pipelines, run here and by TensorFlow, and compared.

`python -m tests.differential --tensorflow PYTHON --programs 1000 --seed 1` prints the programs whose elements, errors,
specs or cardinalities differ. PYTHON is an interpreter that can import TensorFlow 2.21. `--kind structured` makes
programs of nested structures and all dtypes, with arguments that may not fit (`structures.py`), instead of those of
many stages (`programs.py`). Without TensorFlow, the suite runs the programs here only: they end, with errors that users
are meant to see, and stages that change no element change none.
"""
