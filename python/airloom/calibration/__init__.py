"""Calibrations of node kinds on a machine: their storage, and the correction of results."""
