"""interp runs and trains Paddle programs on CPUs. docs/python.md has examples.

    predictor = interp.Predictor("model_folder")
    results = predictor.run({"image": image})
"""
from __future__ import annotations

import json
import operator
import os
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _interp
from ._interp import CancelToken
from .errors import (AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error,
                     FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
                     ResourceExhausted, Unimplemented)

__version__ = _interp.__version__
__all__ = [
    "AlreadyExists", "CancelToken", "Cancelled", "DataLoss", "DeadlineExceeded", "Error",
    "FailedPrecondition", "Internal", "InvalidArgument", "NotFound", "PermissionDenied",
    "Predictor", "Program", "ResourceExhausted", "Results", "Trainer", "Unimplemented", "Var"
]

Path = Union[str, "os.PathLike[str]"]
# One level of offsets each, from 0 on: [[0, 2, 5]] is two sequences, of 2 and of 3 rows.
Lod = Sequence[Sequence[int]]
Feeds = Union[Mapping[str, Any], Sequence[Any]]


class Var(NamedTuple):
    """A variable that is fed or fetched. `array_dtype` is the one of its NumPy arrays, which
    differs for bfloat16: those are uint16. A dim of -1 is any."""

    name: str
    dtype: str
    array_dtype: str
    dims: tuple[int, ...]


class Results(dict):
    """Arrays by name, in the order of the outputs; `lod` has the LoD of those that have one."""

    lod: dict[str, list[list[int]]]

    def __init__(self, rows: Sequence[tuple[str, np.ndarray, list[list[int]]]]):
        super().__init__((name, array) for name, array, _ in rows)
        self.lod = {name: lod for name, _, lod in rows if lod}


def _settings(options: dict[str, Any]) -> _interp.CoreSettings:
    settings = _interp.CoreSettings()
    for name, value in options.items():
        if name.startswith("_") or not hasattr(settings, name):
            known = ", ".join(n for n in dir(settings) if not n.startswith("_"))
            raise TypeError(f"there is no option '{name}'; options are {known}")
        try:
            setattr(settings, name, value)
        except TypeError:
            wanted = type(getattr(settings, name)).__name__
            if wanted == "int" and isinstance(value, (int, np.integer)):
                raise InvalidArgument(f"{name} is {value}, expected a number of"
                                      " 64 bits from 0 on") from None
            raise TypeError(f"option '{name}' is {value!r}, expected a value of type {wanted}"
                            " that fits") from None
    return settings


def _count(name: str, value: Any) -> int:
    """Of threads or the like; the library knows the limits of those that an int of C holds."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, expected an integer")
    count = operator.index(value)
    if not -(1 << 31) <= count < 1 << 31:
        raise InvalidArgument(f"{name} is {count}, expected a number of 31 bits from 1 on")
    return count


def _bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """The upper halves of the values as float32, rounded to nearest, ties to even, as uint16."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    upper = bits >> np.uint32(16)
    rounded = (bits + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16)
    # Rounding could make an infinity of a NaN.
    return np.asarray(np.where(np.isnan(values), upper | np.uint32(0x40), rounded), np.uint16)


def _integers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The same integers as another dtype, which has to have them."""
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for value in (array.min(), array.max()):
        if not least <= int(value) <= most:
            raise InvalidArgument(f"{value} is no {dtype}")
    return array.astype(dtype)


def _rounded(array: np.ndarray, dtype: str, wanted: np.dtype) -> np.ndarray:
    """The floats as another dtype, which has to reach as far."""
    with np.errstate(over="ignore"):
        floats = np.asarray(array, np.float32) if dtype == "bfloat16" else array.astype(wanted)
    bits = _bfloat16_bits(floats) if dtype == "bfloat16" else floats
    finite = (bits & 0x7F80) != 0x7F80 if dtype == "bfloat16" else np.isfinite(bits)
    lost = np.isfinite(array) & ~finite
    if lost.any():
        raise InvalidArgument(f"{array[lost][0]} is no {dtype}")
    return bits


def _converted(value: Any, dtype: str) -> np.ndarray:
    """An array of what is none: a list or a number. `dtype` is the one of the program. What would
    be another value as that is refused; floats may be rounded."""
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise InvalidArgument(f"an array of {array.dtype} cannot be fed")
    if not dtype or dtype == "undefined":
        return array
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return array
    if dtype.startswith("float8"):
        raise InvalidArgument(f"numbers are not converted to {dtype}; feed an array of its bits")
    wanted = np.dtype(np.float32 if dtype == "bfloat16" else dtype)
    if array.size == 0:  # nobody chose its dtype
        return array.astype(np.uint16 if dtype == "bfloat16" else wanted)
    if array.dtype.kind in "iu" and wanted.kind in "biu":
        return _integers(array, wanted)
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise InvalidArgument(f"{array.dtype} cannot be converted to {dtype}")
    return _rounded(array, dtype, wanted)


def _array(name: str, value: Any, dtype: str) -> np.ndarray:
    """What the input of that name is fed."""
    if np.ma.is_masked(value):
        raise InvalidArgument(f"feed '{name}' has masked elements; use its filled()")
    if isinstance(value, np.ndarray):
        return np.require(value, requirements="CA")
    try:
        return _converted(value, dtype)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"feed '{name}': {error}") from None


def _names(names: Sequence[str], what: str) -> list[str]:
    """A str is a sequence of its characters, and never meant so."""
    if isinstance(names, str):
        raise InvalidArgument(f"{what} is '{names}', expected a list of names, as in ['{names}']")
    return list(names)


def _unique(fetches: Sequence[str]) -> list[str]:
    """Results are by name."""
    names = _names(fetches, "fetches")
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgument(f"fetch '{name}' is there twice")
    return names


def _offsets(name: str, lod: Lod) -> list[list[int]]:
    """The LoD of a feed as the extension module takes it."""
    try:
        levels = [[operator.index(offset) for offset in level] for level in lod]
    except TypeError:
        levels = None
    if levels is None or any(offset.bit_length() > 63 for level in levels for offset in level):
        raise InvalidArgument(f"the LoD of '{name}' is {lod!r}, expected levels of offsets, as in"
                              " [[0, 2, 5]]")
    return levels


def _ordered(feeds: Feeds, names: Sequence[str], dtypes: Mapping[str, str],
             lod: Optional[Mapping[str, Lod]]) -> list[tuple[np.ndarray, Lod]]:
    """The feeds in the order of the names. Arrays stay as they are; lists become arrays of the
    dtype that is expected."""
    if not isinstance(feeds, Mapping):
        if len(feeds) != len(names):
            raise InvalidArgument(f"there are {len(feeds)} feeds, expected {len(names)}: "
                                  + ", ".join(names))
        feeds = dict(zip(names, feeds))
    lod = lod or {}
    for name in [*feeds, *lod]:
        if name not in names:
            raise InvalidArgument(f"feed '{name}' is unknown; inputs are {', '.join(names)}")
    for name in names:
        if name not in feeds:
            raise InvalidArgument(f"input '{name}' is not fed")

    return [(_array(name, feeds[name], dtypes.get(name, "")), _offsets(name, lod.get(name, [])))
            for name in names]


class Program:
    """A program; it never changes."""

    def __init__(self, _program: _interp.Program):
        self._program = _program

    @staticmethod
    def load(path: Path) -> "Program":
        """Reads a .pdmodel, or the text form where the path ends in .txt."""
        return Program(_interp.Program.read(os.fspath(path)))

    @staticmethod
    def parse(text: str) -> "Program":
        """Reads the text form (docs/formats.md)."""
        return Program(_interp.Program.parse(text))

    def to_text(self) -> str:
        return self._program.to_text()

    def to_dict(self) -> dict[str, Any]:
        """What `interp dump --stage=program --format=json` prints."""
        return json.loads(self._program.to_json())

    def serialize(self) -> bytes:
        """The bytes of a .pdmodel."""
        return self._program.serialize()

    @property
    def vars(self) -> list[dict[str, Any]]:
        """Of block 0, as in to_dict()."""
        return self.to_dict()["blocks"][0]["vars"]

    @property
    def ops(self) -> list[dict[str, Any]]:
        """Of block 0, as in to_dict()."""
        return self.to_dict()["blocks"][0]["ops"]

    def plan(self, feeds: Sequence[str] = (), fetches: Sequence[str] = ()) -> dict[str, Any]:
        """How it would run; without names it is fed and fetched as it says itself."""
        text = self._program.plan_json(_names(feeds, "feeds"), _names(fetches, "fetches"))
        return json.loads(text)

    def minimize(self, loss: str, optimizer: str = "sgd", startup: Optional["Program"] = None,
                 no_grad: Sequence[str] = (),
                 checkpoints: Sequence[str] = ()) -> tuple["Program", "Program"]:
        """(main, startup) for training; `optimizer` as in `interp backward --optimizer`."""
        first = startup if startup is not None else Program.parse("program version=0\nblock 0\n")
        main, start = self._program.minimize(first._program, loss, optimizer,
                                             _names(no_grad, "no_grad"),
                                             _names(checkpoints, "checkpoints"))
        return Program(main), Program(start)


class Predictor:
    """A model with its parameters, run by any number of threads.

    `model`: a program, a plan, a folder that holds one, or a path without its ending; `params`: a
    file or folder of parameters, by default those beside it. Calls that come at once compute side
    by side on `num_streams` streams. Options: scheduler, algorithms, num_threads,
    num_workers, max_memory_bytes, check_nan_inf, check_feed_shapes, random_seed, file_folder (where
    ops of the program may save and load), place ("cuda:0" is the first GPU; before anything else
    runs), tf32 and cuda_graphs (of GPUs), disable_passes, enable_passes.
    """

    def __init__(self, model: Path, params: Optional[Path] = None, *, feeds: Sequence[str] = (),
                 fetches: Sequence[str] = (), num_streams: int = 1, **options: Any):
        self._predictor = _interp.Predictor(
            os.fspath(model), None if params is None else os.fspath(params), _names(feeds, "feeds"),
            _unique(fetches), _count("num_streams", num_streams), _settings(options))
        self.inputs = [Var(*row[:3], tuple(row[3])) for row in self._predictor.inputs()]
        self.outputs = [Var(*row[:3], tuple(row[3])) for row in self._predictor.outputs()]

    @property
    def input_names(self) -> list[str]:
        return [var.name for var in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [var.name for var in self.outputs]

    @property
    def num_streams(self) -> int:
        return self._predictor.num_streams()

    def run(self, *feeds: Any, lod: Optional[Mapping[str, Lod]] = None,
            timeout: Optional[float] = None, cancel: Optional[CancelToken] = None) -> Results:
        """run({"x": x, "y": y}) or run(x, y). Contiguous arrays are used where they are, so nobody
        may write into them meanwhile; results own their memory. `timeout` in seconds. Other
        threads of Python run during the call."""
        given = feeds[0] if len(feeds) == 1 and isinstance(feeds[0], Mapping) else feeds
        dtypes = {var.name: var.dtype for var in self.inputs}
        return Results(self._predictor.run(_ordered(given, self.input_names, dtypes, lod), timeout,
                                           cancel))

    def plan(self) -> dict[str, Any]:
        """What `interp dump --stage=plan --format=json` prints."""
        return json.loads(self._predictor.plan_json())


class Trainer:
    """Runs a training program step by step; `startup` makes its parameters. Options as of
    Predictor."""

    def __init__(self, main: Program, startup: Optional[Program] = None, *,
                 feeds: Sequence[str] = (), fetches: Sequence[str] = (), **options: Any):
        self._dtypes = {var["name"]: var.get("dtype", "") for var in main.vars}
        self._trainer = _interp.Trainer(main._program,
                                        None if startup is None else startup._program,
                                        _names(feeds, "feeds"),
                                        _unique(fetches), _settings(options))

    @property
    def feeds(self) -> list[str]:
        return self._trainer.feeds()

    @property
    def fetches(self) -> list[str]:
        return self._trainer.fetches()

    @property
    def num_steps(self) -> int:
        return self._trainer.num_steps()

    def step(self, *feeds: Any, lod: Optional[Mapping[str, Lod]] = None,
             timeout: Optional[float] = None) -> Results:
        """One step, fed as Predictor.run."""
        given = feeds[0] if len(feeds) == 1 and isinstance(feeds[0], Mapping) else feeds
        return Results(self._trainer.step(_ordered(given, self.feeds, self._dtypes, lod), timeout))

    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of all persistable tensors, the optimizer's state among them. numpy.savez of them
        is a file that Predictor and load_parameters read."""
        return self._trainer.parameters()

    def load_parameters(self, path: Path) -> None:
        self._trainer.load_parameters(os.fspath(path))
