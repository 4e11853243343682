"""The names of paddle.inference, for programs that were written for it.

    config = Config("model.pdmodel", "model.pdiparams")
    predictor = create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    y = predictor.get_output_handle("y").copy_to_cpu()

Only what has an effect is here: no switches for GPUs, TensorRT or MKLDNN.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

import interp


class Config:
    """Where a model lies, and how many threads an op uses."""

    def __init__(self, model: str, params: Optional[str] = None):
        self.set_model(model, params)
        self._threads = 0

    def set_model(self, model: str, params: Optional[str] = None) -> None:
        self._model = model
        self._params = params

    def prog_file(self) -> str:
        return self._model

    def params_file(self) -> Optional[str]:
        return self._params

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """0: as many as there are CPUs."""
        return self._threads


class Tensor:
    """What goes in or has come out under one name."""

    def __init__(self, var: interp.Var):
        self._var = var
        self._array: Optional[np.ndarray] = None
        self._lod: Sequence[Sequence[int]] = []

    def name(self) -> str:
        return self._var.name

    def type(self) -> str:
        return self._var.dtype

    def reshape(self, shape: Sequence[int]) -> None:
        """Zeros of that shape, until values come."""
        self._array = np.zeros(shape, self._var.array_dtype)

    def copy_from_cpu(self, array: np.ndarray) -> None:
        self._array = np.array(array, order="C")

    def share_external_data(self, array: np.ndarray) -> None:
        """The same without a copy: the array is used by run()."""
        self._array = array

    def copy_to_cpu(self) -> np.ndarray:
        return self._value().copy()

    def shape(self) -> list[int]:
        return list(self._var.dims if self._array is None else self._array.shape)

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        self._lod = lod

    def lod(self) -> Sequence[Sequence[int]]:
        return self._lod

    def _value(self) -> np.ndarray:
        if self._array is None:
            raise interp.FailedPrecondition(f"'{self._var.name}' has no value yet")
        return self._array


class Predictor:
    """A predictor with handles. One thread at a time; clone() gives one for another thread, which
    shares parameters and plan."""

    def __init__(self, predictor: interp.Predictor):
        self._predictor = predictor
        self._inputs = {var.name: Tensor(var) for var in predictor.inputs}
        self._outputs = {var.name: Tensor(var) for var in predictor.outputs}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        return _handle(self._inputs, name, "input")

    def get_output_handle(self, name: str) -> Tensor:
        return _handle(self._outputs, name, "output")

    def run(self, inputs: Optional[Sequence[Any]] = None) -> Optional[list[np.ndarray]]:
        """Without arguments what the handles have; a list of arrays gives a list of results."""
        if inputs is not None:
            return list(self._predictor.run(*inputs).values())
        feeds = {name: handle._value() for name, handle in self._inputs.items()}
        lod = {name: handle._lod for name, handle in self._inputs.items() if handle._lod}
        results = self._predictor.run(feeds, lod=lod)
        for name, handle in self._outputs.items():
            handle._array = results[name]
            handle._lod = results.lod.get(name, [])
        return None

    def clone(self) -> "Predictor":
        return Predictor(self._predictor)


def _handle(handles: dict[str, Tensor], name: str, what: str) -> Tensor:
    if name not in handles:
        raise interp.NotFound(f"there is no {what} '{name}'; {what}s are {', '.join(handles)}")
    return handles[name]


def create_predictor(config: Config, num_streams: int = 1) -> Predictor:
    """`num_streams`: how many clones may compute at a time."""
    return Predictor(
        interp.Predictor(config.prog_file(), config.params_file(), num_streams=num_streams,
                         num_threads=config.cpu_math_library_num_threads()))
