"""Plans the number of responses to sample for a prompt (Argos, section 3.3 and appendix E).

A group of n responses is drawn from the policy, and the response with the largest estimated reward
is reinforced. Each of m reward components is the true component plus noise. The paper gives a lower
bound of the probability that this response is delta-Pareto-optimal, which means that no response of
the policy is better by delta or more in every component.

    H(n) = (1 - (1 - beta)^n) * max(0, 1 - (n - 1) exp(-C m))
    C = delta^2 w_min^2 / (4 sigma^2 w_max^2)

**The bound is not proved.** The proof shows that the selected response is not dominated *within the
group*, and uses this as Pareto-optimality among *all* responses. A counterexample has three
responses whose rewards are 0, -0.99 delta and -delta in every component, drawn with the
probabilities 0, 0.3 and 0.7. The first response dominates the last one, but is never in a group.
For n = 2 and C m = 3, the bound is 0.4846 and the true probability is 0.3041. `plan_group_size`
therefore also simulates the selection.

`bounds` contains the formulas, `planning` the simulation, and `estimates` estimates beta and sigma
from episodes.
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
