"""Slices: admission of slivers, their radios over time, hopping sequences, codes and divisions."""
