"""The names of paddle.inference, for programs that were written for it.

    config = Config("model.pdmodel", "model.pdiparams")
    predictor = create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    y = predictor.get_output_handle("y").copy_to_cpu()

A setter of Config has an effect, or asks for what holds anyway (enable_mkldnn: kernels use oneDNN), or
raises Unimplemented: nothing that a program asks for is ignored.
"""
from __future__ import annotations

import enum
import os
from typing import Any, Callable, Iterable, Optional, Sequence

import numpy as np

import interp


class PrecisionType(enum.Enum):
    """What products are computed in."""
    Float32 = "float32"
    Half = "fp16"
    Bfloat16 = "bf16"
    Int8 = "int8"


# Passes that make programs faster; the others are part of what a program means.
_OPTIMIZATIONS = ("simplify", "fuse_quantizers", "fuse_where", "fuse_layer_norm",
                  "fuse_activation", "late_squeeze", "fuse_groups", "fuse_conv", "fuse_batch_norm",
                  "fuse_fc", "fuse_shuffle", "move_channels", "fuse_attention", "fuse_depthwise")

# Of paddle.inference, what interp has nothing for.
_REFUSED = {
    "disable_mkldnn": "kernels use oneDNN where it is fastest",
    "enable_profile": "`interp run --profile` shows where the time goes",
    "set_model_buffer": "a model is read from files",
    "enable_tensorrt_engine": "there is no TensorRT",
    "enable_xpu": "there are no kernels for XPUs",
    "enable_custom_device": "there are no kernels for other devices",
    "enable_onnxruntime": "there is no ONNX Runtime",
    "enable_lite_engine": "there is no Paddle Lite",
    "enable_ipu": "there are no kernels for IPUs",
    "set_mkldnn_op": "kernels use oneDNN where it is fastest",
    "set_bfloat16_op": "ops are computed in bfloat16 as their definitions say",
    "pass_builder": "delete_pass takes passes of `interp passes` away",
}


def _refused(name: str, why: str) -> Callable[..., None]:
    def method(self: Any, *args: Any, **options: Any) -> None:
        raise interp.Unimplemented(f"Config.{name}: {why}")
    method.__doc__ = f"Raises Unimplemented: {why}."
    return method


class Config:
    """Where a model lies, and how it runs."""

    def __init__(self, model: Optional[str] = None, params: Optional[str] = None):
        self.set_model(model, params)
        self._threads = 0
        self._place = "cpu"
        self._precision = PrecisionType.Float32
        self._gpu_precision = PrecisionType.Float32
        self._optimizes = True
        self._reuses_memory = True
        self._deleted: list[str] = []

    def set_model(self, model: Optional[str], params: Optional[str] = None) -> None:
        self._model = model
        self._params = params

    def set_prog_file(self, path: str) -> None:
        self._model = path

    def set_params_file(self, path: str) -> None:
        self._params = path

    def prog_file(self) -> Optional[str]:
        return self._model

    def params_file(self) -> Optional[str]:
        return self._params

    def model_dir(self) -> Optional[str]:
        """The folder that was given for a model."""
        is_folder = self._model is not None and os.path.isdir(self._model)
        return self._model if is_folder else None

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """0: as many as there are CPUs."""
        return self._threads

    def switch_ir_optim(self, x: bool = True) -> None:
        """False leaves out the passes that fuse ops."""
        self._optimizes = bool(x)

    def ir_optim(self) -> bool:
        return self._optimizes

    def delete_pass(self, name: str) -> None:
        """Leaves out a pass of `interp passes`; those of Paddle have other names."""
        self._deleted.append(name)

    def enable_memory_optim(self, x: bool = True) -> None:
        """False: no output takes the memory of an input. Memory that is free is used again anyway."""
        self._reuses_memory = bool(x)

    def enable_use_gpu(self, memory_pool_init_size_mb: int = 0, device_id: int = 0,
                       precision_mode: PrecisionType = PrecisionType.Float32) -> None:
        """Runs on that GPU. Its memory is taken as it is needed, whatever the first size."""
        if not isinstance(precision_mode, PrecisionType):
            raise TypeError(f"precision_mode is {precision_mode!r}, expected a PrecisionType")
        self._place = f"cuda:{device_id}"
        self._gpu_precision = precision_mode

    def disable_gpu(self) -> None:
        self._place = "cpu"

    def use_gpu(self) -> bool:
        return self._place != "cpu"

    def gpu_device_id(self) -> int:
        return int(self._place.partition(":")[2] or 0)

    def enable_mkldnn(self) -> None:
        """Kernels use oneDNN anyway."""

    def mkldnn_enabled(self) -> bool:
        return True

    def set_mkldnn_cache_capacity(self, capacity: int = 0) -> None:
        """What is made for shapes is kept in any case, and in bounds."""

    def enable_mkldnn_bfloat16(self) -> None:
        """Products in bfloat16, as of `interp run --precision bf16`."""
        self._precision = PrecisionType.Bfloat16

    def enable_mkldnn_int8(self, mkldnn_int8_enabled_op_types: Iterable[str] = ()) -> None:
        """Computes in int8 what was quantised in training."""
        if mkldnn_int8_enabled_op_types:
            raise interp.Unimplemented("Config.enable_mkldnn_int8: types of ops cannot be chosen")
        self._precision = PrecisionType.Int8

    def mkldnn_int8_enabled(self) -> bool:
        return self._precision == PrecisionType.Int8

    def disable_glog_info(self) -> None:
        """Nothing is logged anyway."""

    def glog_info_disabled(self) -> bool:
        return True

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Inputs and outputs are handles: only False is possible."""
        if x:
            raise interp.Unimplemented("Config.switch_use_feed_fetch_ops: inputs are handles,"
                                       " expected False")

    def use_feed_fetch_ops_enabled(self) -> bool:
        return False

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Inputs have names: only True is possible."""
        if not x:
            raise interp.Unimplemented("Config.switch_specify_input_names: inputs have names,"
                                       " expected True")

    def specify_input_name(self) -> bool:
        return True

    def switch_ir_debug(self, x: bool = True) -> None:
        """Only False is possible."""
        if x:
            raise interp.Unimplemented("Config.switch_ir_debug: `interp dump --stage=passes` shows a"
                                       " program after its passes")

    def summary(self) -> str:
        """What is set, a line each."""
        rows = [("model", self._model), ("params", self._params), ("place", self._place),
                ("threads", self._threads), ("precision", self._precision_here().value),
                ("left out passes", " ".join(self._options()["disable_passes"]))]
        return "".join(f"{name}: {value}\n" for name, value in rows)

    def _precision_here(self) -> PrecisionType:
        """That of the GPU and that of the CPU are set apart."""
        return self._gpu_precision if self.use_gpu() else self._precision

    def _options(self) -> dict[str, Any]:
        """Those of interp.Predictor."""
        disabled = list(self._deleted)
        if not self._optimizes:
            disabled.extend(_OPTIMIZATIONS)
        if not self._reuses_memory:
            disabled.append("inplace")
        precision = self._precision_here()
        precise = precision == PrecisionType.Float32
        return {"num_threads": self._threads, "place": self._place,
                "disable_passes": list(dict.fromkeys(disabled)),
                "enable_passes": [] if precise else [precision.value]}


for _name, _why in _REFUSED.items():
    setattr(Config, _name, _refused(_name, _why))


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
        if any(size < 0 for size in shape):
            raise interp.InvalidArgument(f"the shape of '{self._var.name}' is {list(shape)},"
                                         " expected sizes from 0 on")
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
    model = config.prog_file()
    if model is None:
        raise interp.InvalidArgument("the Config has no model: expected Config(MODEL, PARAMS) or"
                                     " set_model")
    return Predictor(
        interp.Predictor(model, config.params_file(), num_streams=num_streams, **config._options()))


class PredictorPool:
    """A predictor for each of `size` threads; they share parameters and plan."""

    def __init__(self, config: Config, size: int = 1):
        first = create_predictor(config, num_streams=size)
        self._predictors = [first] + [first.clone() for _ in range(size - 1)]

    def retrieve(self, index: int) -> Predictor:
        return self._predictors[index]

    # As Paddle spells it.
    retrive = retrieve


def get_version() -> str:
    return f"version: {interp.__version__}\n"
