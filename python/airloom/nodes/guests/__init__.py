"""Nodes with a kernel of their own: boot, shared guests, kernels, file systems, attachment to the engine."""
