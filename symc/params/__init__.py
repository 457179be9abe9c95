"""Parameters: named, nested collections of states, and files of them."""

from symc.params.collection import Params
from symc.params.files import load_params, save_params

__all__ = ["Params", "load_params", "save_params"]
