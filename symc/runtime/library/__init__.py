"""The functions that kernels call, in the subset of Python that both compilers of kernels read.

``symc.runtime.compilers.llvm_library`` reads their sources and imports none of them; Numba compiles the modules.
"""

#: The modules, each after those whose constants and functions it uses.
MODULES = ("math", "power", "error", "hyperbolic", "angles", "trig", "gamma", "random", "draws", "special",
           "complex_parts", "complex", "helpers")
