"""`wb.collectives`: how long collectives take, measured and predicted."""
