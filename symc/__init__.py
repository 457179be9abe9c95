"""symc: a static-declaration symbolic compiler."""
