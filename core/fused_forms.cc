#include "core/fused_forms.h"

#include <string>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"

namespace interp {

absl::Status CheckNothingFused(const Op& op, absl::Span<const absl::string_view> read) {
  AttrReader attrs(op);
  const auto skipped = [read](absl::string_view name) { return absl::c_linear_search(read, name); };
  if (!skipped("act_type") && attrs.Bool("with_act", false)) {
    return InvalidArgument("attribute 'act_type' is '", attrs.String("act_type", ""),
                           "', expected none");
  }
  for (const absl::string_view name : {"fuse_activation", "activation_type"}) {
    if (skipped(name)) continue;
    const std::string activation = attrs.String(name, "");
    if (activation.empty()) continue;
    return InvalidArgument("attribute '", name, "' is '", activation, "', expected none");
  }
  // Paddle's own kernels, which compute where oneDNN is not asked to, read no scales of int8.
  const bool by_onednn = attrs.Bool("use_mkldnn", false);
  for (const absl::string_view name : {"Scale_x", "Scale_y", "Scale_out", "fused_output_scale"}) {
    const bool counts = by_onednn || name == "fused_output_scale";
    const float scale = skipped(name) || !counts ? 1 : attrs.Float(name, 1);
    if (scale == 1) continue;
    return InvalidArgument("attribute '", name, "' is ", scale, ", only 1 is supported");
  }
  for (const absl::string_view name :
       {"fused_reshape_X", "fused_reshape_Y", "fused_reshape_Out", "fused_transpose_X",
        "fused_transpose_Y", "fused_transpose_Out", "fused_squeeze2_axes", "fused_unsqueeze2_axes",
        "fused_reshape2_shape"}) {
    if (skipped(name) || attrs.Ints(name).empty()) continue;
    return InvalidArgument("attribute '", name, "' is set, which is not supported");
  }
  return attrs.status();
}

bool IsFusedConv(const Op& op) {
  AttrReader attrs(op);
  const bool fused = attrs.Bool("fuse_relu", false) || attrs.Bool("fuse_brelu", false) ||
                     attrs.Bool("fuse_residual_connection", false) ||
                     attrs.Bool("with_act", false) || !attrs.String("fuse_activation", "").empty();
  return fused || !attrs.status().ok();
}

}  // namespace interp
