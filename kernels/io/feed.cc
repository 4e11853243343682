// feed: Out = element `col` of the feed list X. Shares the memory: the caller's arrays are read in
// place.
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct FeedAttrs {
  int32_t col = 0;
};

FeedAttrs ReadFeedAttrs(AttrReader& reader) {
  const FeedAttrs attrs = {reader.Int("col", 0)};
  if (attrs.col < 0) reader.Fail("attribute 'col' is negative");
  return attrs;
}

absl::Status Feed(KernelContext& ctx) {
  const std::vector<Tensor>& list = ctx.input_array(kX);
  const size_t col = static_cast<size_t>(ctx.attrs<FeedAttrs>().col);
  if (col >= list.size()) {
    return InvalidArgument("feed list has ", list.size(), " tensors, expected one in column ", col);
  }
  ctx.output(kOut) = list[col];
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "feed",
    .inputs = {{"X", kTensorArray | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FeedAttrs, ReadFeedAttrs>,
    .kernels = {{DType::kUndefined, Feed}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
