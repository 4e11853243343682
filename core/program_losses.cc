// Losses and metrics of ProgramBuilder.
#include "core/layer_helper.h"
#include "core/shape.h"

namespace interp {
namespace {

// Whether dims that are both known differ.
bool Differ(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != -1 && b[i] != -1) return true;
  }
  return false;
}

bool CheckLabel(LayerHelper& layer, const Var& label, const Dims& expected) {
  return layer.Check(
      !Differ(label.dims, expected),
      absl::StrCat("the label is ", DimsText(label.dims), ", expected ", DimsText(expected)));
}

bool CheckIndices(LayerHelper& layer, const Var& label) {
  return layer.Check(label.dtype == DType::kInt64 || label.dtype == DType::kInt32,
                     absl::StrCat("the label is of ", Name(label.dtype), ", expected int64"));
}

}  // namespace

Value ProgramBuilder::SoftmaxWithCrossEntropy(Value logits, Value label,
                                              const SoftmaxLossOptions& options) {
  LayerHelper layer(*this, "softmax_with_cross_entropy", {logits, label});
  const Var in = Get(logits);
  const std::optional<int> axis = NormalizeAxis(options.axis, static_cast<int>(in.dims.size()));
  if (!layer.ok() ||
      !layer.Check(axis.has_value(),
                   absl::StrCat("axis ", options.axis, " is outside of rank ", in.dims.size()))) {
    return {};
  }
  Dims rows = in.dims;
  rows[*axis] = 1;
  if (!CheckLabel(layer, Get(label), options.soft_label ? in.dims : rows)) return {};
  if (!options.soft_label && !CheckIndices(layer, Get(label))) return {};
  const Value softmax = layer.Temporary(in.dims, in.dtype);
  const Value loss = layer.Temporary(std::move(rows), in.dtype);
  AddOp("softmax_with_cross_entropy", {{"Logits", {logits}}, {"Label", {label}}},
        {{"Softmax", {softmax}}, {"Loss", {loss}}},
        {{"soft_label", options.soft_label},
         {"ignore_index", options.ignore_index},
         {"numeric_stable_mode", true},
         {"axis", options.axis},
         {"use_softmax", true}});
  return loss;
}

Value ProgramBuilder::CrossEntropy(Value logits, Value label, const SoftmaxLossOptions& options) {
  return Mean(SoftmaxWithCrossEntropy(logits, label, options));
}

Value ProgramBuilder::SquareErrorCost(Value x, Value label) {
  LayerHelper layer(*this, "square_error_cost", {x, label});
  const Var in = Get(x);
  if (!layer.ok() || !CheckLabel(layer, Get(label), in.dims)) return {};
  const Value difference = layer.Temporary(in.dims, in.dtype);
  AddOp("elementwise_sub", {{"X", {x}}, {"Y", {label}}}, {{"Out", {difference}}}, {{"axis", -1}});
  const Value square = layer.Temporary(in.dims, in.dtype);
  AddOp("square", {{"X", {difference}}}, {{"Out", {square}}});
  return square;
}

Value ProgramBuilder::Mean(Value x) {
  LayerHelper layer(*this, "mean", {x});
  const Value out = layer.Temporary({}, Get(x).dtype);
  AddOp("reduce_mean", {{"X", {x}}}, {{"Out", {out}}},
        {{"dim", std::vector<int32_t>{}},
         {"keep_dim", false},
         {"reduce_all", true},
         {"in_dtype", -1},
         {"out_dtype", -1}});
  return out;
}

Value ProgramBuilder::Accuracy(Value x, Value label, int k) {
  LayerHelper layer(*this, "accuracy", {x, label});
  const Var in = Get(x);
  if (!layer.ok() ||
      !layer.Check(in.dims.size() == 2 && k > 0 && (in.dims[1] == -1 || k <= in.dims[1]),
                   absl::StrCat("k is ", k, " of an input ", DimsText(in.dims)))) {
    return {};
  }
  if (!CheckLabel(layer, Get(label), {in.dims[0], 1}) || !CheckIndices(layer, Get(label))) {
    return {};
  }
  const Value values = layer.Temporary({in.dims[0], k}, in.dtype);
  const Value indices = layer.Constant({in.dims[0], k}, DType::kInt64);
  AddOp("top_k_v2", {{"X", {x}}}, {{"Out", {values}}, {"Indices", {indices}}},
        {{"k", k}, {"axis", -1}, {"largest", true}, {"sorted", false}});
  const Value accuracy = layer.Constant({}, DType::kFloat32);
  const Value correct = layer.Constant({}, DType::kInt32);
  const Value total = layer.Constant({}, DType::kInt32);
  AddOp("accuracy", {{"Out", {values}}, {"Indices", {indices}}, {"Label", {label}}},
        {{"Accuracy", {accuracy}}, {"Correct", {correct}}, {"Total", {total}}});
  return accuracy;
}

}  // namespace interp
