// What the copies that InsertTransfers adds are called, and the ops that make them.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/place.h"
#include "core/program.h"
#include "core/tensor.h"

namespace interp {

inline constexpr absl::string_view kCastOp = "cast";

// What the name of a copy ends with.
std::string MoveSuffix(Place from, Place to);
std::string LayoutSuffix(Layout from, Layout to);
std::string CastSuffix(DType from, DType to);

// The ops, without arguments.
Op MoveOp(Place from, Place to);
Op LayoutOp(Layout from, Layout to);
Op CastOp(DType from, DType to);

}  // namespace interp
