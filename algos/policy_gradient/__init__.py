"""Policy gradients: one page for each algorithm, made of blocks that they share.

`base.PolicyGradient` holds what is common: corrected token losses plus a divergence, aggregated.
The blocks: `advantage` and `credit` (how good was it), `ratio` (ratios and the clip), `kl`,
`correction` (sampler against trainer), `aggregation` (normalizers), `overlong`.
"""

from .base import Clipped, GroupRelative, PolicyGradient
from .bnpo import BNPO
from .cispo import CISPO
from .dapo import DAPO
from .dr_grpo import DrGRPO
from .grpo import GRPO
from .gspo import GSPO
from .reinforce_plus_plus import ReinforcePlusPlus
from .rejection_sampling import RejectionSampling
from .rloo import RLOO

__all__ = [
    "BNPO",
    "CISPO",
    "DAPO",
    "GRPO",
    "GSPO",
    "RLOO",
    "Clipped",
    "DrGRPO",
    "GroupRelative",
    "PolicyGradient",
    "ReinforcePlusPlus",
    "RejectionSampling",
]
