"""Profiles of the time of a compiled function: of a call by step and by user line, of compiling by phase.

``measure`` runs a function on a clock; ``report`` and ``lines`` are the tables; ``limits`` is what this machine could
do; ``chrome`` writes a trace for a browser; ``compiling`` is the table of what compiling took.
"""
