// MakeOp and the like: the ops that passes put in.
#pragma once

#include <initializer_list>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

using SlotArgs = std::initializer_list<std::pair<absl::string_view, ArgIds>>;

// type(inputs) -> (outputs), without attributes. A slot without arguments is left out.
Op MakeOp(absl::string_view type, SlotArgs inputs, SlotArgs outputs);

// type(X=x) -> (Out=out)
Op MakeUnaryOp(absl::string_view type, VarId x, VarId out);

// type(X=x, Y=y) -> (Out=out), where the dims of y are the last of those of x.
Op MakeBinaryOp(absl::string_view type, VarId x, VarId y, VarId out);

// out = x * scale + bias
Op MakeScaleOp(VarId x, VarId out, double scale, double bias);

Op MakeCastOp(VarId x, VarId out, DType from, DType to);

}  // namespace interp
