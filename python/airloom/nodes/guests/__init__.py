"""Nodes with their own kernel: boot, shared guests, kernels, file systems, engine connection."""
