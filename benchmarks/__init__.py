"""Side-by-side benchmarks of symc and its peers: ``python -m benchmarks`` (see README.md)."""
