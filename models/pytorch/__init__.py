"""Captures PyTorch modules; needs the extra ``torch``.

``errors``, ``checks``  why a module cannot be captured
``records``    what a capture holds: operations, values, storages
``exporting``  module and loss to a graph, by torch.export
``preserve``   leaves buffers, gradients and random state as they were found
``recording``  runs the graph once and notes down what each operation does to memory
``sources``    which operations every stage repeats, and which must stay together
``labels``, ``groups``, ``layers``  operations to layers
``segments``   a part of the graph that runs alone: a layer to be timed, or a stage
``attention``, ``roofline``  what a GPU that is not here would save and take
``clock``, ``passes``, ``workspace``, ``timing``  measures the parts
``policies``, ``ways``  recompute of a part: what is saved, and how many bytes that is
``profiling``  layers and costs to a profile
``capturing``  all of it in one call
``ready``      a problem that is ready to plan
``matching``   the layers of a problem in a module that is captured again
``split``      stages for torch.distributed.pipelining
``proof``      the stages against the unsplit model
"""

from partita.models.pytorch.capturing import Capture, capture
from partita.models.pytorch.errors import CannotCapture

__all__ = ["CannotCapture", "Capture", "capture"]
