// What prelu and its gradient have in common: where Alpha meets X.
#pragma once

#include <optional>
#include <string>

#include "core/op_def.h"
#include "kernels/util/read_choice.h"

namespace interp {

struct PReluAttrs {
  enum class Mode { kAll, kChannel, kElement };
  Mode mode = Mode::kAll;
  bool channel_is_last = false;

  static PReluAttrs Read(AttrReader& attrs) {
    PReluAttrs parsed;
    parsed.mode = ReadChoice<Mode>(
        attrs, "mode",
        {{"all", Mode::kAll}, {"channel", Mode::kChannel}, {"element", Mode::kElement}});
    const std::string format = attrs.String("data_format", "NCHW");
    parsed.channel_is_last = format == "NHWC" || format == "NDHWC" || format == "NLC";
    return parsed;
  }
};

// Shape of Alpha at the rank of X; nullopt when X has no such dimension.
std::optional<Shape> AlphaShape(const PReluAttrs& attrs, const Shape& x);

// InvalidArgument unless Alpha fits X.
absl::Status CheckAlpha(const PReluAttrs& attrs, const Tensor& x, const Tensor& alpha);

// Alpha, or its gradient, at the rank of X, in the same memory.
Tensor AlphaAtRankOf(const PReluAttrs& attrs, const Tensor& x, const Tensor& alpha);

}  // namespace interp
