"""What a process on this machine is and has: how it is forked, its BLAS threads, GPUs and TPUs."""
