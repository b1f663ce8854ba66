"""Quantities of a scenario, figures of a result, and how both are written as text."""
