"""Passes on loops and branches, one a file."""
