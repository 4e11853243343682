// The attributes of dropout, which its gradient shares.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "core/attr_reader.h"

namespace interp::nn {

struct DropoutAttrs {
  float probability = 0.5F;
  bool test = false;
  bool upscale_in_train = false;
  int32_t seed = 0;  // 0: other numbers in every run
};

inline DropoutAttrs ReadDropout(AttrReader& reader) {
  DropoutAttrs attrs;
  attrs.probability = reader.Float("dropout_prob", 0.5F);
  if (!(attrs.probability >= 0 && attrs.probability <= 1)) {
    reader.Fail(absl::StrCat("attribute 'dropout_prob' is ", attrs.probability,
                             ", expected a probability"));
  }
  attrs.test = reader.Bool("is_test", false);
  const std::string mode = reader.String("dropout_implementation", "downgrade_in_infer");
  attrs.upscale_in_train = mode == "upscale_in_train";
  if (!attrs.upscale_in_train && mode != "downgrade_in_infer") {
    reader.Fail(absl::StrCat("attribute 'dropout_implementation' is \"", mode,
                             "\", expected downgrade_in_infer or upscale_in_train"));
  }
  if (reader.Bool("fix_seed", false)) attrs.seed = reader.Int("seed", 0);
  return attrs;
}

}  // namespace interp::nn
