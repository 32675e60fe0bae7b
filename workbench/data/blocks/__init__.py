"""Functions of elements called for many rows at once, where the results are provably the same.

`straight_code.py` selects candidates: functions whose code has no branches or effects, and refers only to numbers and
NumPy. `recorder.py` calls such a function once with stand-ins and records its computation, which must be exact element
by element. `expression.py` computes that for a block of rows, and rejects a block for which NumPy would warn.
`calls.py` compares some rows of each block with calls of the function itself.
"""
