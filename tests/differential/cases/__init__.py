"""Random cases in the form of the reference vectors, run here and by TensorFlow, and compared.

`python -m tests.differential.cases --tensorflow PYTHON --area variables --cases 1000 --seed 1` prints the cases whose
outcomes differ; `--help` lists the areas. `--exact` compares the classes of errors about arguments, too. It prints
what differs on purpose, too (`explanation/decisions.md` of the guide). The suite runs the cases here only: each ends,
with a result or an error that users are meant to see.
"""
