"""Names of other libraries, on symc's public functions: ``symc.compat.theano``."""
