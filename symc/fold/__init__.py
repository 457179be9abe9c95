"""``import symc.fold as fd``: dynamic graphs, run in batches.

A model is *blocks*, cells written for one instance and compiled once, and a graph of them for each example, which is
only integers. A minibatch of such graphs is scheduled natively, and runs natively: what can run together does.
"""

from symc.fold import lib
from symc.fold.block import Block, block, loss
from symc.fold.combinators import (
    RNN,
    AllOf,
    Broadcast,
    Combinator,
    Composition,
    Constant,
    Fold,
    ForwardDeclaration,
    InputTransform,
    Map,
    Metric,
    OneOf,
    Optional,
    Pipe,
    Rec,
    Record,
    Reduce,
    Zip,
    ZipWith,
    self_,
)
from symc.fold.items import Concat, GetItem, Length, Max, Mean, Min, NGrams, Nth, OneHot, Slice, Sum
from symc.fold.record import Batch, Dataset
from symc.fold.recording import Recording, lockstep, record
from symc.fold.sparse import RowGradient
from symc.fold.step import Step, compile
from symc.fold.types import Array, Attr, Key, Many, Struct, f32, f64, i32, i64
from symc.fold.types import Record as Value
from symc.optim.sparse import SparseRows

__all__ = [
    "RNN", "AllOf", "Array", "Attr", "Batch", "Block", "Broadcast", "Combinator", "Composition", "Concat", "Constant",
    "Dataset", "Fold", "ForwardDeclaration", "GetItem", "InputTransform", "Key", "Length", "Many", "Map", "Max",
    "Mean", "Metric", "Min", "NGrams", "Nth", "OneHot", "OneOf", "Optional", "Pipe", "Rec", "Record", "Recording",
    "Reduce", "RowGradient", "Slice", "SparseRows", "Step", "Struct", "Sum", "Value", "Zip", "ZipWith", "block",
    "compile", "f32", "f64", "i32", "i64", "lib", "lockstep", "loss", "record", "self_",
]  # fmt: skip
