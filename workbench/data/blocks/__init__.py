"""Functions of elements called for many rows at once, where the results are provably the same.

`straight_code.py` says which functions may be looked at more closely: those whose code has no branches and no effects,
and refers to numbers and NumPy alone. `recorder.py` calls such a function once with stand-ins and writes down what it
computes, which has to be exact element by element. `expression.py` computes that for a block of rows, and refuses a
block where NumPy would warn. `calls.py` compares some rows of each block with calls of the function itself.
"""
