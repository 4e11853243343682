// cudnn_lstm: what programs of Paddle 1 have for layers of LSTM; here an rnn. W has all weights, or
// WeightList as rnn takes them: of each layer and direction those of the input and of the state,
// then the biases in the same order. In W gates are as cuDNN has them, which rnn has, too.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/expansion.h"

namespace interp::nn::cudnn_lstm {
namespace {

// Takes the parts of a vector one after the other.
class Splitter {
 public:
  Splitter(Expansion& ops, VarId vector) : ops_(ops), vector_(vector) {}

  VarId Next(const std::vector<int64_t>& shape) {
    int64_t size = 1;
    for (const int64_t dim : shape) size *= dim;
    const VarId part = ops_.Add("slice", {{"Input", vector_}});
    if (part == Expansion::kAbsent) return part;
    ops_.SetAttr("axes", std::vector<int32_t>{0});
    ops_.SetAttr("starts", std::vector<int32_t>{static_cast<int32_t>(begin_)});
    ops_.SetAttr("ends", std::vector<int32_t>{static_cast<int32_t>(begin_ + size)});
    begin_ += size;
    const VarId shaped = ops_.Add("reshape", {{"X", part}});
    ops_.SetAttr("shape", std::vector<int32_t>(shape.begin(), shape.end()));
    return shaped;
  }

 private:
  Expansion& ops_;
  VarId vector_;
  int64_t begin_ = 0;
};

// The parts of W.
absl::StatusOr<std::vector<VarId>> SplitWeights(Expansion& ops) {
  const int64_t input = ops.attrs().Int("input_size", 10);
  const int64_t hidden = ops.attrs().Int("hidden_size", 100);
  const int64_t layers = ops.attrs().Int("num_layers", 1);
  const int64_t directions = ops.attrs().Bool("is_bidirec", false) ? 2 : 1;
  constexpr int64_t kMost = 1 << 15;
  constexpr int64_t kMostLayers = 1 << 8;
  if (input < 1 || hidden < 1 || layers < 1 || std::max(input, hidden) > kMost ||
      layers > kMostLayers) {
    return InvalidArgument("'input_size' is ", input, ", 'hidden_size' ", hidden,
                           " and 'num_layers' ", layers, ", expected 1 to ", kMost, ", and ",
                           kMostLayers, " layers at most");
  }
  const int64_t widest = std::max(input, hidden * directions);
  if (layers * directions * 4 * hidden * (widest + hidden + 2) > INT32_MAX) {
    return InvalidArgument("the weights of 'W' are more than 2^31");
  }
  Splitter parts(ops, ops.Input("W"));
  std::vector<VarId> weights;
  for (int64_t i = 0; i < layers * directions; ++i) {
    const int64_t width = i < directions ? input : hidden * directions;
    weights.push_back(parts.Next({4 * hidden, width}));
    weights.push_back(parts.Next({4 * hidden, hidden}));
  }
  for (int64_t i = 0; i < 2 * layers * directions; ++i) {
    weights.push_back(parts.Next({4 * hidden}));
  }
  return weights;
}

absl::Status Expand(Expansion& ops) {
  std::vector<VarId> weights = ops.Inputs("WeightList");
  if (weights.empty()) {
    INTERP_ASSIGN_OR_RETURN(weights, SplitWeights(ops));
  }
  const VarId out = ops.Add("rnn", {{"Input", ops.Input("Input")}});
  if (out == Expansion::kAbsent) return InvalidArgument("input 'Input' is missing");
  ops.SetAttr("mode", std::string("LSTM"));
  ops.AlsoTakes("PreState", {ops.Input("InitH"), ops.Input("InitC")});
  ops.AlsoTakes("WeightList", weights);
  ops.AlsoTakes("SequenceLength", {ops.Input("SequenceLength")});
  ops.AlsoGives("DropoutState");
  ops.AlsoGives("Reserve");
  const std::vector<VarId> states = ops.AlsoGives("State", 2);
  ops.Set("Out", out);
  ops.Set("LastH", states[0]);
  ops.Set("LastC", states[1]);
  for (const absl::string_view slot : {"Reserve", "StateOut"}) ops.LeaveOut(slot);
  return absl::OkStatus();
}

INTERP_REGISTER_EXPANSION(ExpansionDef{.type = "cudnn_lstm",
                                       .inputs = {{"Input"},
                                                  {"InitH"},
                                                  {"InitC"},
                                                  {"W", kOptional},
                                                  {"WeightList", kOptional | kVariadic},
                                                  {"SequenceLength", kOptional},
                                                  {"Cache", kOptional}},
                                       .outputs = {{"Out"},
                                                   {"LastH", kOptional},
                                                   {"LastC", kOptional},
                                                   {"Reserve", kOptional},
                                                   {"StateOut", kOptional}},
                                       .expand = Expand});

}  // namespace
}  // namespace interp::nn::cudnn_lstm
