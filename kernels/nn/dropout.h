// The attributes of dropout, which its gradient shares.
#pragma once

#include <string>
#include <variant>

#include "core/attr_reader.h"
#include "core/op_def.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/scalar_bytes.h"

namespace interp::nn {

// The slot of the probability as a tensor, of both directions.
inline constexpr int kProbabilityTensor = 2;
inline constexpr int kProbabilityFlags = kOptional | kAnyDType | kHostInput;

struct DropoutAttrs {
  float probability = 0.5F;
  bool test = false;
  bool upscale_in_train = false;
  int32_t seed = 0;  // 0: other numbers in every run
};

inline absl::Status CheckProbability(float probability) {
  if (probability >= 0 && probability <= 1) return absl::OkStatus();
  return InvalidArgument("'dropout_prob' is ", probability, ", expected a probability");
}

// Whether training divides by the probability of staying. Programs before Paddle 1.5 have a flag in
// place of a name.
inline bool ReadUpscaleInTrain(AttrReader& reader) {
  const Attr* const attr = reader.op().FindAttr("dropout_implementation");
  if (attr != nullptr && !std::holds_alternative<std::string>(attr->value)) {
    return reader.Bool("dropout_implementation", false);
  }
  return ReadChoice<bool>(reader, "dropout_implementation",
                          {{"downgrade_in_infer", false}, {"upscale_in_train", true}});
}

inline DropoutAttrs ReadDropout(AttrReader& reader) {
  DropoutAttrs attrs;
  attrs.probability = reader.Float("dropout_prob", 0.5F);
  if (const absl::Status valid = CheckProbability(attrs.probability); !valid.ok()) {
    reader.Fail(valid.message());
  }
  attrs.test = reader.Bool("is_test", false);
  attrs.upscale_in_train = ReadUpscaleInTrain(reader);
  if (reader.Bool("fix_seed", false)) attrs.seed = reader.Int("seed", 0);
  return attrs;
}

// The attributes, with the probability as a tensor may give it.
inline absl::StatusOr<DropoutAttrs> DropoutAttrsOf(const OpContext& ctx) {
  DropoutAttrs attrs = ctx.attrs<DropoutAttrs>();
  INTERP_ASSIGN_OR_RETURN(attrs.probability,
                          ReadFloat(ctx, kProbabilityTensor, "dropout_prob", attrs.probability));
  INTERP_RETURN_IF_ERROR(CheckProbability(attrs.probability));
  return attrs;
}

}  // namespace interp::nn
