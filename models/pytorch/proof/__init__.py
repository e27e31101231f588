"""Proves numerically that the stages of a plan compute what the unsplit model computes.

``data``       inputs of the microbatches
``labels``     stages whose tensors carry their microbatch
``reference``  the unsplit model
``comparing``  differences and what rounding explains
``launching``  processes, and the first real failure of them
``verifying``  all of it in one call
"""

from partita.models.pytorch.proof.comparing import Difference, largest
from partita.models.pytorch.proof.launching import RankFailed
from partita.models.pytorch.proof.verifying import Verification, verify

__all__ = ["Difference", "RankFailed", "Verification", "largest", "verify"]
