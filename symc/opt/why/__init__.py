"""Explanations, read off provenance: what fired, what did not and why, the catalogue of rules."""
