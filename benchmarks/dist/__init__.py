"""Functions on Dask, on several processes and outside of symc: what tasks, workers, sums, starts and exports cost."""
