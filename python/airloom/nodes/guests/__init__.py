"""Nodes with their own kernel: boot, shared guests, kernels, file systems, connection to the
engine.
"""
