#include "kernels/recurrent/rnn_shapes.h"

#include "kernels/util/read_choice.h"

namespace interp::nn {
namespace {

absl::Status CheckShape(const Tensor* tensor, absl::string_view name, size_t index,
                        const Shape& expected) {
  if (tensor != nullptr && tensor->shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "'[", index, "] is ",
                         tensor == nullptr ? "absent" : DescribeType(*tensor), ", expected ",
                         ToString(expected));
}

absl::Status CheckArguments(const InferContext& ctx, const RnnSizes& s) {
  const auto& attrs = ctx.attrs<RnnAttrs>();
  const absl::Span<const Tensor* const> states = ctx.inputs(kRnnPreState);
  const size_t num_states = attrs.mode == RnnMode::kLstm ? 2 : 1;
  if (states.size() != num_states) {
    return InvalidArgument("input 'PreState' has ", states.size(), " arguments, expected ",
                           num_states);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    INTERP_RETURN_IF_ERROR(
        CheckShape(states[i], "PreState", i, {s.layers * s.directions, s.batch, s.hidden}));
  }
  const absl::Span<const Tensor* const> weights = ctx.inputs(kRnnWeightList);
  const size_t pairs = static_cast<size_t>(2 * s.layers * s.directions);
  if (weights.size() != 2 * pairs) {
    return InvalidArgument("input 'WeightList' has ", weights.size(), " arguments, expected ",
                           2 * pairs);
  }
  for (size_t i = 0; i < pairs; ++i) {
    const int64_t features = static_cast<int64_t>(i) < 2 * s.directions ? s.input : s.width();
    const Shape expected = {s.gates, i % 2 == 0 ? features : s.hidden};
    INTERP_RETURN_IF_ERROR(CheckShape(weights[i], "WeightList", i, expected));
    INTERP_RETURN_IF_ERROR(CheckShape(weights[pairs + i], "WeightList", pairs + i, {s.gates}));
  }
  const Tensor* lengths = ctx.optional_input(kRnnSequenceLength);
  return lengths == nullptr ? absl::OkStatus()
                            : CheckShape(lengths, "SequenceLength", 0, {s.batch});
}

}  // namespace

RnnAttrs ReadRnn(AttrReader& reader) {
  RnnAttrs attrs;
  attrs.mode = ReadChoice<RnnMode>(reader, "mode",
                                   {{"RNN_TANH", RnnMode::kTanh},
                                    {"RNN_RELU", RnnMode::kRelu},
                                    {"LSTM", RnnMode::kLstm},
                                    {"GRU", RnnMode::kGru}});
  attrs.hidden = reader.Int("hidden_size", 100);
  attrs.layers = reader.Int("num_layers", 1);
  attrs.directions = reader.Bool("is_bidirec", false) ? 2 : 1;
  attrs.dropout = reader.Float("dropout_prob", 0);
  attrs.seed = reader.Int("seed", 0);
  attrs.test = reader.Bool("is_test", false);
  if (attrs.hidden < 1 || attrs.layers < 1 || !(attrs.dropout >= 0 && attrs.dropout <= 1)) {
    reader.Fail("attribute 'hidden_size', 'num_layers' or 'dropout_prob' is out of range");
  }
  return attrs;
}

RnnSizes RnnSizesOf(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<RnnAttrs>();
  const Shape& x = ctx.input(kRnnInput).shape;
  return {x[0],
          x[1],
          x[2],
          attrs.hidden,
          GateCount(attrs.mode) * attrs.hidden,
          attrs.layers,
          attrs.directions};
}

absl::Status CheckRnnInputs(const InferContext& ctx) {
  const Shape& x = ctx.input(kRnnInput).shape;
  if (x.rank() != 3) {
    return InvalidArgument("input 'Input' has shape ", ToString(x),
                           ", expected [time, batch, features]");
  }
  const RnnSizes s = RnnSizesOf(ctx);
  if (!Shape{s.layers, s.directions, s.time, s.batch, s.gates}.CheckedNumel().has_value()) {
    return InvalidArgument("input 'Input' ", ToString(x), " and 'hidden_size' ", s.hidden,
                           " are too large");
  }
  return CheckArguments(ctx, s);
}

absl::StatusOr<std::vector<int64_t>> RnnLengths(const KernelContext& ctx, const RnnSizes& s) {
  const Tensor* tensor = ctx.optional_input(kRnnSequenceLength);
  if (tensor == nullptr) return std::vector<int64_t>();
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, InferContext::Integers(*tensor));
  for (const int64_t length : lengths) {
    if (length < 0 || length > s.time) {
      return InvalidArgument("input 'SequenceLength' holds ", length, ", expected 0 to ", s.time);
    }
  }
  return lengths;
}

}  // namespace interp::nn
