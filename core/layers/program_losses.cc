// Losses and metrics of ProgramBuilder.
#include "core/layers/layer_helper.h"
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

// --- what cross_entropy of Paddle is made of ---

// Over all elements. `reduce_all` is what Paddle's function of that name writes; without dims both
// mean the same.
Value Reduced(ProgramBuilder& net, const std::string& name, Value x, bool reduce_all) {
  LayerHelper layer(net, name, {x});
  const Value out = layer.Temporary({}, net.Get(x).dtype);
  net.AddOp("reduce_" + name, {{"X", {x}}}, {{"Out", {out}}},
            {{"dim", std::vector<int32_t>{}},
             {"keep_dim", false},
             {"reduce_all", reduce_all},
             {"in_dtype", -1},
             {"out_dtype", -1}});
  return out;
}

Value Sum(ProgramBuilder& net, Value x) { return Reduced(net, "sum", x, /*reduce_all=*/false); }

Value FilledScalar(ProgramBuilder& net, float value, absl::string_view text, DType dtype) {
  LayerHelper layer(net, "fill_constant", {});
  const Value out = layer.Constant({}, dtype);
  net.AddOp("fill_constant", {}, {{"Out", {out}}},
            {{"value", value},
             {"str_value", std::string(text)},
             {"force_cpu", false},
             {"place_type", -1},
             {"shape", Dims{}},
             {"dtype", static_cast<int32_t>(dtype)}});
  return out;
}

// Whether x and y are equal, or are not, as numbers of that dtype.
Value Compared(ProgramBuilder& net, absl::string_view type, Value x, Value y, DType dtype) {
  LayerHelper layer(net, type, {x, y});
  const Value same = layer.Constant(net.Get(x).dims, DType::kBool);
  net.AddOp(type, {{"X", {x}}, {"Y", {y}}}, {{"Out", {same}}},
            {{"axis", -1}, {"force_cpu", false}});
  LayerHelper cast(net, "cast", {same});
  const Value out = cast.Constant(net.Get(x).dims, dtype);
  net.AddOp("cast", {{"X", {same}}}, {{"Out", {out}}},
            {{"in_dtype", static_cast<int32_t>(DType::kBool)},
             {"out_dtype", static_cast<int32_t>(dtype)}});
  return out;
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
  const Value losses = SoftmaxWithCrossEntropy(logits, label, options);
  if (!status().ok() || options.soft_label || options.ignore_index < 0) return Mean(losses);
  const DType dtype = Get(losses).dtype;
  const Value sum = Sum(*this, losses);
  const Value ignored =
      FilledScalar(*this, static_cast<float>(options.ignore_index), "", Get(label).dtype);
  const Value count = Sum(*this, Compared(*this, "not_equal", label, ignored, dtype));
  // Where all are ignored, 0 is divided by 1.
  const Value none = Compared(*this, "equal", count, FilledScalar(*this, 0, "0.0", dtype), dtype);
  return Div(sum, Add(count, none));
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

Value ProgramBuilder::Mean(Value x) { return Reduced(*this, "mean", x, /*reduce_all=*/true); }

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
