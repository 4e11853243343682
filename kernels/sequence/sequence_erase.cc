// sequence_erase: the sequences of X without the elements that `tokens` lists.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SequenceEraseAttrs {
  std::vector<int64_t> tokens;  // sorted
};

SequenceEraseAttrs ReadSequenceEraseAttrs(AttrReader& reader) {
  SequenceEraseAttrs attrs = {reader.Ints("tokens")};
  std::sort(attrs.tokens.begin(), attrs.tokens.end());
  return attrs;
}

// Copies what is kept of X to `out` and returns the new offsets of its lowest level.
template <typename T>
std::vector<int64_t> Erase(const T* x, Offsets offsets, const std::vector<int64_t>& tokens,
                           T* out) {
  std::vector<int64_t> kept = {0};
  kept.reserve(offsets.size());
  const T* const first = out;
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      if (!std::binary_search(tokens.begin(), tokens.end(), int64_t{x[k]})) *out++ = x[k];
    }
    kept.push_back(out - first);
  }
  return kept;
}

template <typename T>
absl::Status SequenceErase(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, SequenceOffsets(x, "X"));
  if (RowSize(x) != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected rows of one element");
  }
  Tensor& out = ctx.output(kOut);
  out.shape = {x.shape[0], 1};  // until it is known how many are kept
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  const auto& tokens = ctx.attrs<SequenceEraseAttrs>().tokens;
  std::vector<int64_t> kept = Erase(x.data<T>(), offsets, tokens, out.mutable_data<T>());
  out.shape[0] = kept.back();
  out.lod = x.lod;
  out.lod.back() = std::move(kept);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_erase",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceEraseAttrs, ReadSequenceEraseAttrs>,
    .kernels = {{DType::kInt64, SequenceErase<int64_t>}, {DType::kInt32, SequenceErase<int32_t>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
