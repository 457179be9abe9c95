"""Facts of values without running them: ranges, finiteness, sizes, forms. Analyses return tables."""
