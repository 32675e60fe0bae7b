"""Random pipelines, run here and by TensorFlow, and compared.

`python -m tests.differential --tensorflow PYTHON --programs 1000 --seed 1` prints the programs whose elements, errors,
specs or cardinalities differ; with `--accepted`, also those that only TensorFlow refuses. PYTHON is an interpreter that
can import TensorFlow 2.21. `--kind` says which programs:

plain: many stages (`programs.py`). structured: nested structures, all dtypes and arguments that may not fit
(`structures.py`). files: small, damaged files to read (`files.py`). tables: CSV files (`tables.py`). sequences:
examples with steps to parse (`sequences.py`). choices: datasets of datasets, choices among them, buckets, states,
classes as elements, random access (`choices.py`). stored: what is saved, kept in snapshots, and resumed (`stored.py`).
failing: elements that fail inside of `interleave`, behind `prefetch`, in windows (`failing.py`).
described: options, specs and optionals (`described.py`). shared: parts of hosts, new batches, a data service
(`shared.py`).

served: data services with several workers (`served.py`). values: what Python values become (`values.py`).

clusters: clusters, resolvers, device strings and partitioners, with environments and arguments of all kinds
(`clusters.py`).

wire: examples as protocol buffers allow them, and damaged (`wire.py`).

Without TensorFlow, the suite runs the programs here only: they end, with errors that users are meant to see, and stages
that change no element change none. Of the programs "served" it compares some with what TensorFlow gave: `served.json`
is written by `--kind served --programs 36 --seed 1993 --record tests/differential/served.json`.
"""
