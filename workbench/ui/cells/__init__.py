"""`wb.run_cell` and `%%replica`: a cell on every replica."""
