"""Random pipelines, run here and by TensorFlow, and compared.

`python -m tests.differential --tensorflow PYTHON --programs 1000 --seed 1` prints the programs whose elements, errors,
specs or cardinalities differ. PYTHON is an interpreter that can import TensorFlow 2.21. The programs have many stages
(`programs.py`); with `--kind structured`, nested structures, all dtypes and arguments that may not fit
(`structures.py`); with `--kind files`, small, damaged files to read (`files.py`). Without TensorFlow, the suite runs
the programs here only: they end, with errors that users are meant to see, and stages that change no element change
none.
"""
