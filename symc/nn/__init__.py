"""``sc.nn``: what networks are made of.

Functions alone (activations, losses, convolution, pooling, attention) and layers, which are functions of a collection
of parameters: ``h = sc.nn.dense(P.sub("hidden"), x, 128, activation="relu")``.
"""

from typing import Any

from symc.nn import activations, layers, losses, recurrent, windows
from symc.nn.activations import *  # noqa: F403
from symc.nn.layers import *  # noqa: F403
from symc.nn.losses import *  # noqa: F403
from symc.nn.recurrent import *  # noqa: F403
from symc.nn.windows import *  # noqa: F403
from symc.tensors.guidance import no_name

__all__ = sorted({*activations.__all__, *layers.__all__, *losses.__all__, *recurrent.__all__, *windows.__all__})


def __getattr__(name: str) -> Any:
    raise no_name("module 'sc.nn'", name, __all__, {})
