"""The road from values to a compiled function, and from its call to results."""
