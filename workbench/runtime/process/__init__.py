"""A process on this machine and its resources: forking, BLAS threads, GPUs, TPUs."""
