"""The methods of a dataset that add a stage, by what the stage does."""
