"""What is measured: policies on logs, packs on benchmarks, lives with a known truth."""
