// What the ops of quantisation-aware training say: which values lie on a grid of whole numbers, and
// what brings sums of products of such values back. All of it is about block 0.
#pragma once

#include <optional>
#include <vector>

#include "passes/fuse/fusion.h"

namespace interp {

// A value on the grid that a scale spans.
struct Quantized {
  VarId source = -1;  // the real values; with `whole`, a parameter of values on the grid
  bool whole = false;
  // One element, or one by channel; nullopt: the largest magnitude of `source`, in each run.
  std::optional<VarId> scale = std::nullopt;
  VarId written_scale = -1;  // where the op leaves that scale; -1: nowhere
  // Brings the value back where `scale` does not; a parameter of one element, as
  // paddle.quantization makes for each op.
  std::optional<VarId> back_scale = std::nullopt;
  int64_t axis = -1;  // of the channels; -1: one scale for all
  int32_t bits = 8;
  int32_t round_type = 0;  // as the attribute of the fake_quantize ops: 0 ties to even, else away
  bool back = false;       // the value is real again; else whole numbers
  std::vector<int> ops = {};  // that make it, ascending

  int64_t bins() const { return (int64_t{1} << (bits - 1)) - 1; }
  // Whether the scale is in that variable.
  bool HasScale(VarId id) const { return scale == id || written_scale == id; }
};

// Whether the op is quantize_linear or dequantize_linear, whose result is Y.
bool IsLinearQuantizer(const Op& op);

// Which op alone writes each variable, -1 for none or several; by VarId.
std::vector<int> FindWriters(const Fuser& fuser);

// How `value` was put on a grid; nullopt if it was not, or if training still moves its scale.
std::optional<Quantized> MatchQuantized(const Fuser& fuser, const std::vector<int>& writers,
                                        VarId value);

// The op that brings sums of products back: Out = X * input_scale * filter_scale / range.
struct Dequantized {
  VarId input_scale = -1;
  std::optional<VarId> filter_scale = std::nullopt;  // by channel
  float range = 1;
};
// `channel_axis`: of the sums.
std::optional<Dequantized> MatchDequantized(const Op& op, int64_t channel_axis);

}  // namespace interp
