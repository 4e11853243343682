// The blocks that ops run: those that their attributes name.
#pragma once

#include <algorithm>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/program.h"

namespace interp {

// Empty for attributes of other kinds.
inline absl::Span<const int32_t> BlocksIn(const Attr& attr) {
  if (const auto* one = std::get_if<BlockIndex>(&attr.value)) {
    return absl::MakeConstSpan(&one->index, 1);
  }
  if (const auto* several = std::get_if<BlockIndices>(&attr.value)) return several->indices;
  return {};
}

// True for ops that run a block of the program (while, conditional_block): they use all variables
// which that block uses.
inline bool HasSubBlock(const Op& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(),
                     [](const Attr& attr) { return !BlocksIn(attr).empty(); });
}

// The block that one attribute names, which need not be one of the program; -1: none.
inline int32_t SubBlockOf(const Op& op, absl::string_view attr = "sub_block") {
  const Attr* const found = op.FindAttr(attr);
  const auto* const block = found == nullptr ? nullptr : std::get_if<BlockIndex>(&found->value);
  return block == nullptr ? -1 : block->index;
}

// Calls f(block index) for each block attribute of the op.
template <typename F>
void ForEachSubBlock(const Op& op, F f) {
  for (const Attr& attr : op.attrs) {
    for (const int32_t block : BlocksIn(attr)) f(block);
  }
}

}  // namespace interp
