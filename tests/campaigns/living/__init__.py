"""Random simulated runs of a lab: their steps, their interruptions, and the values that must be equal afterwards."""
