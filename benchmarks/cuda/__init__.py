"""symc on a GPU beside PyTorch, JAX and CuPy: ``python -m benchmarks.cuda`` (benchmarks/README.md, "On a GPU")."""
