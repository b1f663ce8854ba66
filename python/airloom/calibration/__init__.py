"""Calibrations of node kinds on a machine: measurement figures, storage, correction of results."""
