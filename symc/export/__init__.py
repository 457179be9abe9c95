"""Compiled functions in forms that others run: C, shared libraries, and formats of other engines.

Every form is made of what the optimizer gave, and refuses an op that it has no way to express by name and line.
"""
