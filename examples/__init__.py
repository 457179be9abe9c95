"""Small real programs. Each file reads on one screen, runs by itself and has a ``main`` that the tests call."""
