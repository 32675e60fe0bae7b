"""What can be done to a dataset: methods that add a stage, by what the stage does."""
