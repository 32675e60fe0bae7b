"""A dispatcher's state and decisions: jobs (`coordinator.py`), the placement of lanes (`placement.py`), its journal."""
