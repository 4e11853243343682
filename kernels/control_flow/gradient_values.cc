#include "kernels/control_flow/gradient_values.h"

#include <cstring>

#include "core/element_types.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp::control_flow {
namespace {

template <typename T>
void AddElements(int num_threads, const Tensor& a, const Tensor& b, Tensor& out) {
  const T* const x = a.data<T>();
  const T* const y = b.data<T>();
  T* const sum = out.mutable_data<T>();
  ParallelFor(num_threads, out.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      using C = ComputeType<T>;
      sum[i] = static_cast<T>(WrapAdd(static_cast<C>(x[i]), static_cast<C>(y[i])));
    }
  });
}

// Gradients of integers are zeros: Paddle makes some where a cast reads an integer of outside.
absl::Status AddElements(int num_threads, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto add = [&]<typename T>() { AddElements<T>(num_threads, a, b, out); };
  if (WithOneOf<float, double, float16, bfloat16, int32_t, int64_t>(out.dtype, add)) {
    return absl::OkStatus();
  }
  return Unimplemented("adds up gradients of ", Name(out.dtype),
                       ", expected floats, int32 or int64");
}

// sum += value, in memory that others do not see.
absl::Status AddTensor(const KernelContext& ctx, const Tensor& value, Tensor& sum) {
  if (!HasValue(sum)) {
    sum = value;
    return absl::OkStatus();
  }
  if (!(value.shape == sum.shape) || value.dtype != sum.dtype) {
    return InvalidArgument("a gradient is ", DescribeType(value), " in one step and ",
                           DescribeType(sum), " in those after it");
  }
  if (sum.numel() == 0) return absl::OkStatus();
  const Tensor before = sum;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(sum));
  return AddElements(ctx.num_threads(), before, value, sum);
}

absl::Status FillZerosLike(const KernelContext& ctx, const Tensor& like, Tensor& out) {
  if (like.dtype == DType::kUndefined) return absl::OkStatus();
  out.shape = like.shape;
  out.dtype = like.dtype;
  out.layout = Layout::kPlain;
  out.lod = like.lod;
  out.DropMemory();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  FillZero(ctx.num_threads(), out);
  return absl::OkStatus();
}

// Puts the rows of `value` behind those of `sum`.
absl::Status AppendRows(const KernelContext& ctx, const Variable& value, Variable& sum) {
  const Tensor& added = value.tensor;
  Tensor& all = sum.tensor;
  Shape expected = all.shape;
  if (expected.rank() > 0 && added.shape.rank() > 0) expected[0] = added.shape[0];
  if (!(expected == added.shape) || added.dtype != all.dtype || added.shape.rank() == 0) {
    return InvalidArgument("rows of a gradient are ", DescribeType(added), " in one step and ",
                           DescribeType(all), " in those after it");
  }
  const Tensor before = all;
  all.shape[0] += added.shape[0];
  INTERP_RETURN_IF_ERROR(ctx.Allocate(all));
  char* const to = static_cast<char*>(all.mutable_raw_data());
  if (before.numel() > 0) std::memcpy(to, before.raw_data(), before.size_bytes());
  if (added.numel() > 0) {
    std::memcpy(to + before.size_bytes(), added.raw_data(), added.size_bytes());
  }
  std::vector<int64_t>& rows = sum.selected_rows->rows;
  rows.insert(rows.end(), value.selected_rows->rows.begin(), value.selected_rows->rows.end());
  return absl::OkStatus();
}

}  // namespace

bool HasValue(const Tensor& tensor) {
  return tensor.has_memory() || (tensor.dtype != DType::kUndefined && tensor.numel() == 0);
}

bool HasValue(const Variable& variable) {
  return !variable.array.empty() || HasValue(variable.tensor);
}

void ShareValue(const Variable& from, Variable& to) {
  to.tensor = from.tensor;
  to.array = from.array;
  if (from.selected_rows.has_value()) to.selected_rows = from.selected_rows;
}

absl::Status FillZerosLike(const KernelContext& ctx, const Variable& like, Variable& out) {
  if (out.selected_rows.has_value() && like.tensor.shape.rank() > 0) {
    if (like.tensor.dtype == DType::kUndefined) return absl::OkStatus();
    // No rows are zeros everywhere.
    *out.selected_rows = {.rows = {}, .height = like.tensor.shape[0]};
    out.tensor.dtype = like.tensor.dtype;
    out.tensor.shape = like.tensor.shape;
    out.tensor.shape[0] = 0;
    return ctx.Allocate(out.tensor);
  }
  if (like.array.empty()) return FillZerosLike(ctx, like.tensor, out.tensor);
  out.array.resize(like.array.size());
  for (size_t i = 0; i < like.array.size(); ++i) {
    INTERP_RETURN_IF_ERROR(FillZerosLike(ctx, like.array[i], out.array[i]));
  }
  return absl::OkStatus();
}

void NoteTypes(absl::Span<Variable* const> tensors, Variable& scopes) {
  scopes.array.assign(tensors.size(), Tensor());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] == nullptr || !tensors[i]->array.empty()) continue;
    const Tensor& tensor = tensors[i]->tensor;
    scopes.array[i].shape = tensor.shape;
    scopes.array[i].dtype = tensor.dtype;
    scopes.array[i].lod = tensor.lod;
  }
}

absl::Status FillZerosAsNoted(const KernelContext& ctx, const Variable& scopes, size_t i,
                              const Variable& like, Variable& out) {
  if (i >= scopes.array.size() || scopes.array[i].dtype == DType::kUndefined) {
    return FillZerosLike(ctx, like, out);
  }
  Variable noted;
  noted.tensor = scopes.array[i];
  return FillZerosLike(ctx, noted, out);
}

absl::Status GradientSum::Add(const KernelContext& ctx, const Variable& value) {
  if (!has_value()) {
    ShareValue(value, sum_);
    return absl::OkStatus();
  }
  if (value.selected_rows.has_value() && sum_.selected_rows.has_value()) {
    return AppendRows(ctx, value, sum_);
  }
  if (value.array.empty() && sum_.array.empty()) return AddTensor(ctx, value.tensor, sum_.tensor);
  if (sum_.array.size() < value.array.size()) sum_.array.resize(value.array.size());
  for (size_t i = 0; i < value.array.size(); ++i) {
    if (!HasValue(value.array[i])) continue;
    INTERP_RETURN_IF_ERROR(AddTensor(ctx, value.array[i], sum_.array[i]));
  }
  return absl::OkStatus();
}

}  // namespace interp::control_flow
