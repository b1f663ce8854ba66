"""One run and batches of runs: emulation, runner, programs, measurements, monitors, evidence."""
