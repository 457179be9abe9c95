"""Tools that find what is wrong: debug mode, ``bisect``, ``diff``, and what makes a failing function small.

``observe`` evaluates with a hook; ``perturb`` and ``trust`` say how far apart two right answers may be; ``blame`` names
the pass, the firing of a rule, the kernel or the plan; ``sample`` and ``shrink`` make a function small; ``repro``
writes a script that shows it; ``diff`` compares functions.
"""
