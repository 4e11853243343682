// Attributes of losses, with Paddle's defaults: what the losses and their gradients share.
#pragma once

#include <cstdint>

#include "core/attr_reader.h"
#include "kernels/util/read_choice.h"

namespace interp {

struct CrossEntropyAttrs {
  bool soft_label = false;
  int64_t ignore_index = -100;

  static CrossEntropyAttrs Read(AttrReader& reader) {
    return {reader.Bool("soft_label", false), reader.Int("ignore_index", -100)};
  }
  // Of cross_entropy2, which has no soft labels.
  static CrossEntropyAttrs ReadHard(AttrReader& reader) {
    return {false, reader.Int("ignore_index", -100)};
  }
};

// `numeric_stable_mode` is of no concern: there is no other.
struct SoftmaxLossAttrs {
  bool soft_label = false;
  bool use_softmax = true;
  int64_t ignore_index = -100;
  int64_t axis = -1;

  static SoftmaxLossAttrs Read(AttrReader& reader) {
    return {reader.Bool("soft_label", false), reader.Bool("use_softmax", true),
            reader.Int("ignore_index", -100), reader.Int("axis", -1)};
  }
};

struct SigmoidCrossEntropyAttrs {
  bool normalize = false;
  int32_t ignore_index = -100;

  static SigmoidCrossEntropyAttrs Read(AttrReader& reader) {
    return {reader.Bool("normalize", false), reader.Int("ignore_index", -100)};
  }
};

struct HuberAttrs {
  float delta = 0;
  static HuberAttrs Read(AttrReader& reader) { return {reader.Float("delta", 0.0f)}; }
};

struct LogLossAttrs {
  float epsilon = 1e-4f;
  static LogLossAttrs Read(AttrReader& reader) { return {reader.Float("epsilon", 1e-4f)}; }
};

struct SmoothL1Attrs {
  float sigma = 1;
  static SmoothL1Attrs Read(AttrReader& reader) { return {reader.Float("sigma", 1.0f)}; }
};

enum class LossReduction : uint8_t { kNone, kMean, kSum, kBatchMean };

struct KlDivAttrs {
  LossReduction reduction = LossReduction::kMean;

  static KlDivAttrs Read(AttrReader& reader) {
    return {ReadChoice<LossReduction>(reader, "reduction",
                                      {{"mean", LossReduction::kMean},
                                       {"none", LossReduction::kNone},
                                       {"sum", LossReduction::kSum},
                                       {"batchmean", LossReduction::kBatchMean}})};
  }
};

}  // namespace interp
