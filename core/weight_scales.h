// How programs of Paddle's WeightQuantization say what the whole numbers of their weights are
// multiplied by: in an attribute of the op that reads the weights, which has their name.
#pragma once

#include <vector>

#include "core/program.h"

namespace interp {

struct WeightScaleAttr {
  VarId weights = -1;
  Attr attr;
};

// In program order. Empty for other programs.
std::vector<WeightScaleAttr> WeightScaleAttrsOf(const Program& program);

// Gives these attributes to the ops that read the weights now: passes that put one op in the place
// of others need not know them. Linear time.
void RestoreWeightScales(const std::vector<WeightScaleAttr>& attrs, Program& program);

}  // namespace interp
