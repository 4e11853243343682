#include "interpreter/analysis/transfer_ops.h"

#include "absl/strings/str_cat.h"

namespace interp {
namespace {

Attr IntAttr(absl::string_view name, int value) {
  return {std::string(name), AttrValue(int32_t{value})};
}

}  // namespace

std::string MoveSuffix(Place from, Place to) {
  return absl::StrCat("_device_", Name(from), "_", Name(to));
}

std::string LayoutSuffix(Layout from, Layout to) {
  return absl::StrCat("_layout_", static_cast<int>(from), "_", static_cast<int>(to));
}

std::string CastSuffix(DType from, DType to) {
  return absl::StrCat("_dtype_", static_cast<int>(from), "_", static_cast<int>(to));
}

Op MoveOp(Place from, Place to) {
  Op op;
  op.type = to.on_host() ? "memcpy_d2h" : from.on_host() ? "memcpy_h2d" : "memcpy_p2p";
  return op;
}

Op LayoutOp(Layout from, Layout to) {
  Op op;
  op.type = "transfer_layout";
  op.attrs = {IntAttr("src_layout", static_cast<int>(from)),
              IntAttr("dst_layout", static_cast<int>(to))};
  return op;
}

Op CastOp(DType from, DType to) {
  Op op;
  op.type = std::string(kCastOp);
  op.attrs = {IntAttr("in_dtype", static_cast<int>(from)),
              IntAttr("out_dtype", static_cast<int>(to))};
  return op;
}

}  // namespace interp
