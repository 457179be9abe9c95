"""Tools that find what is wrong: debug mode, ``bisect``, ``diff``, and what makes a failing function small.

``observe`` evaluates with a hook; ``trust`` says how far apart two right answers may be; ``stages`` compares every pass
with the program; ``guilt`` names the pass, the firing of a rule, the kernel or the plan; ``shrink`` makes a function
small; ``repro`` writes a script that shows it.
"""
