"""Comparison of two runs, of one scenario on several kinds of nodes, and the causes of a difference."""
