"""Tools that look at functions and values: explanations, pictures, profiles, checks. Nothing needs it to compile or
run."""
