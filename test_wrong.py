"""pass 'simplify' makes it wrong, by rule tanh_of_sin (its firing 1, firing 1 of the pass)

Found: result 0 at [0] is 6.174169592884063, not 5.749441090994791 (rounding explains 7.1e-13)
"""

import numpy as np

import symc as sc
from symc.ir.reference import evaluate_function
from symc.opt import optimize
from symc.tools.debugging.tolerance import Oracle

TEXT = """
func @f(%v1: f64[1, 1]) -> (f64[1, 1]) {
  %0 = sin %v1 : f64[1, 1]
  %1 = tanh %0 : f64[1, 1]
  return %1
}
"""


def arrays_and_constants():
    """What the function is called on, and the constants that its text names."""
    arrays = [
        np.array([1.0], 'float64').reshape((1, 1)),
    ]
    constants = {}
    return arrays, constants


def test_results_are_the_references():
    arrays, constants = arrays_and_constants()
    function = sc.parse(TEXT, constants)
    program = optimize(function, 'simplify').function
    got = evaluate_function(program, arrays)
    difference = Oracle(function, arrays).difference(got)
    assert difference is None, difference


if __name__ == "__main__":
    test_results_are_the_references()
    print('nothing is wrong any more')
