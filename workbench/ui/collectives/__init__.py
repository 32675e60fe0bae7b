"""`wb.collectives`: how long collectives take, and would take."""
