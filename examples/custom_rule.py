"""A rewrite rule of your own: two expressions, a claim about rounding, and its test."""

import symc as sc
from symc import testing
from symc.opt import rule


@rule(exact=False)
def cosh_from_exponentials(x):
    """``exp(x) + exp(-x)`` costs two exponentials; ``2 * cosh(x)`` costs one call and cannot lose the small one."""
    return sc.exp(x) + sc.exp(-x), 2 * sc.cosh(x)


def test_rule() -> None:
    """The claim of the rule, its types and its gradient, at edge values too."""
    testing.check_rule(cosh_from_exponentials)


def main() -> str:
    """The optimized dump of a function in which the rule fires."""
    x = sc.vector("x")
    f = sc.compile(sc.sum(sc.exp(x) + sc.exp(-x)))
    return f.dump()


if __name__ == "__main__":
    test_rule()
    print(main())
