"""Group size: how many responses to sample for one prompt (Argos, section 3.3 and appendix E).

A group of n responses is drawn from the policy, and the one with the largest estimated reward is
reinforced. Each of m reward components is the true one plus noise. The paper bounds from below the
probability that this response is delta-Pareto-optimal: no response of the policy is better by
delta or more in every component.

    H(n) = (1 - (1 - beta)^n) * max(0, 1 - (n - 1) exp(-C m))
    C = delta^2 w_min^2 / (4 sigma^2 w_max^2)

**The bound is not proved.** The proof shows that the chosen response is not dominated *within the
group*, and takes that for Pareto-optimality among *all* responses. With three responses whose
rewards are 0, -0.99 delta and -delta in every component, drawn with probability 0, 0.3 and 0.7, the
last one is dominated by the first, which never is in the group; with n = 2 and C m = 3 the bound is
0.4846 and the true probability 0.3041. `plan_group_size` therefore also simulates the choice.

`bounds` holds the formulas, `planning` the simulation, and `estimates` finds beta and sigma from
episodes.
"""

from .bounds import (
    approximate_group_size,
    best_group_size,
    exploitation_rate,
    gated_bound,
    pareto_bound,
)
from .estimates import estimate_beta, estimate_sigma
from .planning import GroupSizePlan, pareto_optimal, plan_group_size

__all__ = [
    "GroupSizePlan",
    "approximate_group_size",
    "best_group_size",
    "estimate_beta",
    "estimate_sigma",
    "exploitation_rate",
    "gated_bound",
    "pareto_bound",
    "pareto_optimal",
    "plan_group_size",
]
