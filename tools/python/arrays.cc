#include "arrays.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interp/interp.h"

namespace interp::python {
namespace py = pybind11;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  const py::object raise = py::module_::import("interp.errors").attr("error_of");
  const int code = static_cast<int>(status.code());
  const py::object error = raise(interp_status_name(code), py::str(std::string(status.message())));
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

std::string ArrayDType(DType dtype) {
  switch (dtype) {
    case DType::kUndefined:
      return "";
    case DType::kBFloat16:
      return "uint16";
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return "uint8";
    default:
      return std::string(Name(dtype));
  }
}

namespace {

absl::StatusOr<DType> DTypeOfArray(const py::array& array) {
  const std::string name = py::str(array.dtype());
  if (name == "uint16") return DType::kBFloat16;
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype.has_value() || ArrayDType(*dtype) != name) {
    return InvalidArgument("an array of ", name, " cannot be fed; convert it with astype()");
  }
  return *dtype;
}

absl::StatusOr<Tensor> Borrow(const py::array& array) {
  INTERP_ASSIGN_OR_RETURN(const DType dtype, DTypeOfArray(array));
  constexpr int kNeeded = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
  if ((array.flags() & kNeeded) != kNeeded) {
    return InvalidArgument(
        "the array is not contiguous and aligned; use numpy.require(array, requirements='CA')");
  }
  if (array.ndim() > kMaxRank) {
    return InvalidArgument("the array has ", array.ndim(), " dims, expected ", kMaxRank,
                           " or fewer");
  }
  const std::vector<int64_t> dims(array.shape(), array.shape() + array.ndim());
  return Tensor::Borrow(dtype, Shape(absl::MakeConstSpan(dims)), array.data());
}

}  // namespace

Tensor BorrowArray(const py::array& array, const std::string& what) {
  absl::StatusOr<Tensor> tensor = Borrow(array);
  Check(Annotate(tensor.status(), what));
  return *std::move(tensor);
}

py::array GiveArray(Tensor tensor) {
  const std::vector<py::ssize_t> dims(tensor.shape.begin(), tensor.shape.end());
  const py::dtype dtype(ArrayDType(tensor.dtype));
  // Given, as pybind11 before 2.12 finds them by a size that NumPy 2 keeps elsewhere.
  std::vector<py::ssize_t> strides(dims.size());
  auto stride = static_cast<py::ssize_t>(SizeOf(tensor.dtype));
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  if (tensor.raw_data() == nullptr) return py::array(dtype, dims, strides);
  const bool writable = tensor.buffer()->writable;
  auto kept = std::make_unique<Tensor>(std::move(tensor));
  void* const data = kept->mutable_raw_data();
  const py::capsule owner(kept.get(), [](void* owned) { delete static_cast<Tensor*>(owned); });
  static_cast<void>(kept.release());  // the capsule has it
  py::array array(dtype, dims, strides, data, owner);
  if (!writable) array.attr("flags").attr("writeable") = false;
  return array;
}

}  // namespace interp::python
