"""Measurements: evaluation on logs, benchmarks, simulation, replay and policy search."""
