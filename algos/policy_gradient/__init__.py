"""Implements policy-gradient algorithms, each in a short file.

`base.PolicyGradient` is the common base class: it corrects the losses of tokens, adds the KL
divergence and aggregates. The algorithms share two modules: `advantage` (advantages of episodes and
turns) and `token_loss` (probability ratios, KL, corrections and aggregation).
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
