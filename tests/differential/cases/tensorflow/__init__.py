"""Runs inputs of vectors with TensorFlow: `python -m tests.differential.cases.tensorflow INPUTS OUTCOMES`.

Its interpreter has TensorFlow and need not have workbench. Outcomes are in the form of the vectors; errors have all
their classes. TensorFlow gets eight logical CPU devices.
"""
