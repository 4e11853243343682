// hierarchical_sigmoid: -log of the probability of a class, which is the product of the
// probabilities of the ways at the nodes that lead to it, sigmoid(X W[node] + Bias[node]).
//
// PreOut keeps log(1 + exp(z)) for each node, z within [-40, 40]. As in Paddle, a way that is
// shorter than the longest counts log 2 for each node that it lacks. W_Out is W: programs of Paddle
// name one variable for both.
#include "kernels/loss/hierarchical_sigmoid.h"

#include <algorithm>
#include <cmath>

#include "kernels/util/copy.h"
#include "kernels/util/indices.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOut = 0;
constexpr int kPreOut = 1;
constexpr int kWOut = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape pre_out, ResolveHsigmoid(ctx));
  ctx.SetShape(kOut, {pre_out[0], 1});
  ctx.output(kOut).lod = ctx.input(kHsigmoidX).lod;
  ctx.SetShape(kPreOut, pre_out);
  ctx.ShareShape(kHsigmoidW, kWOut);
  return absl::OkStatus();
}

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
absl::Status HierarchicalSigmoid(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const auto paths, FindPaths(ctx));
  const T* const x = ctx.input(kHsigmoidX).data<T>();
  const T* const w = ctx.input(kHsigmoidW).data<T>();
  const Tensor* const bias = ctx.optional_input(kHsigmoidBias);
  T* const out = ctx.output(kOut).mutable_data<T>();
  T* const pre_out = ctx.output(kPreOut).mutable_data<T>();
  const int64_t width = ctx.input(kHsigmoidW).shape[1];
  const int64_t longest = ctx.output(kPreOut).shape[1];
  const int64_t grain = kElementwiseGrain / (width * longest + 1) + 1;
  ParallelFor(ctx.num_threads(), std::ssize(paths), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T loss = 0;
      for (int64_t j = 0; j < longest; ++j) {
        T z = 0;
        if (j < std::ssize(paths[i])) {
          const TreeNode& node = paths[i][j];
          z = bias == nullptr ? T{0} : bias->data<T>()[node.row];
          z = std::clamp(z + Dot(x + i * width, w + node.row * width, width), T{-40}, T{40});
          if (node.bit) loss -= z;
        }
        pre_out[i * longest + j] = std::log(T{1} + std::exp(z));
        loss += pre_out[i * longest + j];
      }
      out[i] = loss;
    }
  });
  if (Tensor* const w_out = ctx.optional_output(kWOut))
    CopyUnlessShared(ctx.input(kHsigmoidW), *w_out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "hierarchical_sigmoid",
    .inputs = {{"X"},
               {"W"},
               {"Label", kAnyDType},
               {"PathTable", kOptional | kAnyDType},
               {"PathCode", kOptional | kAnyDType},
               {"Bias", kOptional}},
    .outputs = {{"Out"}, {"PreOut"}, {"W_Out", kOptional}},
    .parse = ParseAttrs<HsigmoidAttrs, ReadHsigmoidAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, HierarchicalSigmoid<float>},
                {DType::kFloat64, HierarchicalSigmoid<double>}},
    .inplace = {{kHsigmoidW, kWOut}},
    .gradient = {.inputs = {"X", "W", "Label", "PathTable", "PathCode", "Bias", "PreOut",
                            "Out@GRAD"},
                 .outputs = {"X@GRAD", "W@GRAD", "Bias@GRAD"}},
});

absl::Status CheckIntegers(const Tensor& tensor, absl::string_view name, const Shape& shape) {
  if (tensor.dtype == DType::kInt64 && tensor.shape == shape) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(tensor), ", expected int64",
                         ToString(shape));
}

}  // namespace

HsigmoidAttrs ReadHsigmoidAttrs(AttrReader& reader) {
  const HsigmoidAttrs attrs = {reader.Int("num_classes", 2)};
  if (attrs.num_classes < 2) {
    reader.Fail(
        absl::StrCat("attribute 'num_classes' is ", attrs.num_classes, ", expected at least 2"));
  }
  return attrs;
}

absl::StatusOr<Shape> ResolveHsigmoid(const OpContext& ctx) {
  const Shape& x = ctx.input(kHsigmoidX).shape;
  const Shape& w = ctx.input(kHsigmoidW).shape;
  if (x.rank() < 2 || w.rank() != 2 || x.numel(1, x.rank()) != w[1]) {
    return InvalidArgument("input 'X' has shape ", ToString(x), " and 'W' ", ToString(w),
                           ", expected [N,D] and [K,D]");
  }
  const Tensor& label = ctx.input(kHsigmoidLabel);
  const bool flat = label.shape == Shape({x[0]});
  INTERP_RETURN_IF_ERROR(CheckIntegers(label, "Label", flat ? label.shape : Shape({x[0], 1})));
  const Tensor* const bias = ctx.optional_input(kHsigmoidBias);
  if (bias != nullptr && bias->numel() != w[0]) {
    return InvalidArgument("input 'Bias' has shape ", ToString(bias->shape), ", expected ", w[0],
                           " elements, as 'W' has rows");
  }
  const Tensor* const table = ctx.optional_input(kHsigmoidTable);
  const Tensor* const code = ctx.optional_input(kHsigmoidCode);
  if ((table == nullptr) != (code == nullptr)) {
    return InvalidArgument("expected both of 'PathTable' and 'PathCode', or none");
  }
  if (table == nullptr) {
    const auto classes = static_cast<uint64_t>(ctx.attrs<HsigmoidAttrs>().num_classes);
    return Shape{x[0], static_cast<int64_t>(std::bit_width(classes - 1))};
  }
  if (table->shape.rank() != 2 || table->shape[0] != x[0]) {
    return InvalidArgument("input 'PathTable' has shape ", ToString(table->shape), ", expected [",
                           x[0], ",L]");
  }
  INTERP_RETURN_IF_ERROR(CheckIntegers(*table, "PathTable", table->shape));
  INTERP_RETURN_IF_ERROR(CheckIntegers(*code, "PathCode", table->shape));
  return table->shape;
}

namespace {

std::vector<TreeNode> BinaryPath(int64_t label, int64_t num_classes) {
  const auto code = static_cast<uint64_t>(label + num_classes);
  std::vector<TreeNode> path;
  for (int bit = 0; code >> (bit + 1) != 0; ++bit) {
    path.push_back({static_cast<int64_t>(code >> (bit + 1)) - 1, (code >> bit & 1) != 0});
  }
  return path;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<TreeNode>>> FindPaths(const KernelContext& ctx) {
  const Tensor& labels = ctx.input(kHsigmoidLabel);
  const Tensor* const table = ctx.optional_input(kHsigmoidTable);
  const int64_t rows = ctx.input(kHsigmoidW).shape[0];
  const int64_t classes = ctx.attrs<HsigmoidAttrs>().num_classes;
  std::vector<std::vector<TreeNode>> paths(static_cast<size_t>(labels.numel()));
  if (table == nullptr) {
    INTERP_RETURN_IF_ERROR(CheckIndices(labels.data<int64_t>(), labels.numel(), classes, "Label"));
  }
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if (table == nullptr) {
      paths[i] = BinaryPath(labels.data<int64_t>()[i], classes);
    } else {
      const int64_t length = table->shape[1];
      const int64_t* const row = table->data<int64_t>() + i * length;
      const int64_t* const code = ctx.input(kHsigmoidCode).data<int64_t>() + i * length;
      for (int64_t j = 0; j < length && row[j] >= 0; ++j)
        paths[i].push_back({row[j], code[j] != 0});
    }
    for (const TreeNode& node : paths[i]) {
      if (node.row < rows) continue;
      return InvalidArgument("the way to the label of row ", i, " has node ", node.row,
                             ", expected 0 to ", rows - 1, ", the rows of 'W'");
    }
  }
  return paths;
}

}  // namespace interp
