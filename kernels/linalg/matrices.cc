#include "kernels/linalg/matrices.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/util/broadcast.h"
#include "kernels/util/convert_elements.h"

namespace interp::linalg {
namespace {

// The dtype of twice the bits; any but float32 and complex64 stays.
DType Wider(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kFloat64;
  return dtype == DType::kComplex64 ? DType::kComplex128 : dtype;
}

// Floats of a tensor: a complex number has two.
int64_t NumFloats(const Tensor& tensor) {
  const bool complex = IsComplex(tensor.dtype);
  return tensor.numel() * (complex ? 2 : 1);
}

// `ctx` with copies of its float32 and complex64 tensors in the wider dtype.
class WidenedContext : public KernelContext {
 public:
  explicit WidenedContext(const KernelContext& ctx) : KernelContext(ctx), wide_args_(*args_) {
    tensors_ = wide_args_.tensors.data();
    args_ = &wide_args_;
    copies_.reserve(wide_args_.tensors.size());
  }

  absl::Status Widen() {
    for (size_t i = 0; i < wide_args_.tensors.size(); ++i) {
      Tensor* const tensor = wide_args_.tensors[i];
      if (tensor == nullptr || Wider(tensor->dtype) == tensor->dtype) continue;
      Tensor& wide = copies_.emplace_back(tensor, Tensor()).second;
      wide.dtype = Wider(tensor->dtype);
      wide.shape = tensor->shape;
      wide_args_.tensors[i] = &wide;
      if (!tensor->has_memory()) continue;
      INTERP_RETURN_IF_ERROR(Allocate(wide));
      ConvertElements(num_threads(), static_cast<const float*>(tensor->raw_data()),
                      NumFloats(*tensor), static_cast<double*>(wide.mutable_raw_data()));
    }
    return absl::OkStatus();
  }

  void NarrowOutputs() {
    for (const auto& [tensor, wide] : copies_) {
      if (!wide.has_memory() || !IsOutput(wide)) continue;
      ConvertElements(num_threads(), static_cast<const double*>(wide.raw_data()), NumFloats(wide),
                      static_cast<float*>(tensor->mutable_raw_data()));
    }
  }

 private:
  bool IsOutput(const Tensor& wide) const {
    return std::any_of(wide_args_.output_slots.begin(), wide_args_.output_slots.end(),
                       [&](const BoundArgs::Range& slot) {
                         const auto first = wide_args_.tensors.begin() + slot.begin;
                         return std::find(first, first + slot.size, &wide) != first + slot.size;
                       });
  }

  BoundArgs wide_args_;
  std::vector<std::pair<Tensor*, Tensor>> copies_;
};

}  // namespace

absl::Status CheckMatrices(const OpContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= 2) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected matrices");
}

absl::Status CheckSquare(const OpContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= 2 && shape.back(1) == shape.back(2)) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape),
                         ", expected square matrices");
}

absl::StatusOr<BatchPairs> PairBatches(const Shape& x, const Shape& y) {
  BatchPairs pairs;
  INTERP_ASSIGN_OR_RETURN(pairs.batch, BroadcastShapes(x, y, kTrailingAxis));
  const int rank = pairs.batch.rank();
  const auto steps_of = [rank](const Shape& shape) {
    Strides steps = {};
    int64_t step = 1;
    for (int i = shape.rank() - 1; i >= 0; step *= shape[i--]) {
      steps[rank - shape.rank() + i] = shape[i] == 1 ? 0 : step;
    }
    return steps;
  };
  const Strides x_steps = steps_of(x);
  const Strides y_steps = steps_of(y);
  for (int i = 0; i < rank; ++i) pairs.loops.Add({pairs.batch[i], x_steps[i], y_steps[i]});
  return pairs;
}

absl::Status RunWidened(KernelContext& ctx, KernelFn kernel) {
  return Catching([&]() -> absl::Status {
    WidenedContext wide(ctx);
    INTERP_RETURN_IF_ERROR(wide.Widen());
    INTERP_RETURN_IF_ERROR(kernel(wide));
    wide.NarrowOutputs();
    return absl::OkStatus();
  });
}

}  // namespace interp::linalg
