"""GPUs: NVIDIA's NCCL moves the data; several replicas on one GPU share a kernel."""
