"""What a dispatcher knows and decides: jobs (`coordinator.py`), where lanes are (`placement.py`), its journal."""
