// sequence_enumerate: row t of Out is the `win_size` elements of X from t on; what is behind the
// end of the sequence of t is `pad_value`.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct SequenceEnumerateAttrs {
  int64_t window = 2;
  int32_t pad_value = 0;
};

SequenceEnumerateAttrs ReadSequenceEnumerateAttrs(AttrReader& reader) {
  const SequenceEnumerateAttrs attrs = {reader.Int("win_size", 0), reader.Int("pad_value", 0)};
  if (attrs.window < 1) {
    reader.Fail(absl::StrCat("'win_size' is ", attrs.window, ", expected at least 1"));
  }
  return attrs;
}

absl::Status InferSequenceEnumerate(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(SequenceOffsets(x, "X").status());
  if (RowSize(x) != 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected rows of one element");
  }
  ctx.SetShape(kOut, {x.shape[0], ctx.attrs<SequenceEnumerateAttrs>().window});
  ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status SequenceEnumerate(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceEnumerateAttrs>();
  const T* const x = ctx.input(kX).data<T>();
  const Offsets offsets = ctx.input(kX).lod.back();
  T* out = ctx.output(kOut).mutable_data<T>();
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    for (int64_t t = offsets[i]; t < offsets[i + 1]; ++t) {
      const int64_t inside = std::min(attrs.window, offsets[i + 1] - t);
      out = std::copy_n(x + t, inside, out);
      out = std::fill_n(out, attrs.window - inside, static_cast<T>(attrs.pad_value));
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_enumerate",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceEnumerateAttrs, ReadSequenceEnumerateAttrs>,
    .infer = InferSequenceEnumerate,
    .kernels = {{DType::kInt64, SequenceEnumerate<int64_t>},
                {DType::kInt32, SequenceEnumerate<int32_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
