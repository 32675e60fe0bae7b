"""What only a machine with an NVIDIA GPU can tell: `python -m tests.gpu`."""
