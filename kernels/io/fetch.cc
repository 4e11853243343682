// fetch, fetch_v2: element `col` of the fetch list Out = X.
//
// Memory of this run is shared with the list rather than copied: later writers of X, or of a view
// of it, see that they are not alone and take memory of their own. So a fetch is as good as the
// deep copy that the attribute `deepcopy` asks for. Parameters and fed arrays are copied.
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int32_t kMaxFetches = 1 << 20;  // a damaged file must not ask for gigabytes of list

struct FetchAttrs {
  int32_t col = 0;
};

FetchAttrs ReadFetchAttrs(AttrReader& reader) {
  const FetchAttrs attrs = {reader.Int("col", 0)};
  if (attrs.col < 0 || attrs.col >= kMaxFetches) {
    reader.Fail(absl::StrCat("attribute 'col' is ", attrs.col, ", expected 0 to ", kMaxFetches));
  }
  return attrs;
}

absl::Status InferFetch(InferContext&) { return absl::OkStatus(); }

absl::Status Fetch(KernelContext& ctx) {
  const FetchAttrs& attrs = ctx.attrs<FetchAttrs>();
  const Tensor& x = ctx.input(kX);
  std::vector<Tensor>& list = ctx.output_array(kOut);
  if (list.size() <= static_cast<size_t>(attrs.col)) list.resize(attrs.col + 1);
  Tensor& slot = list[attrs.col];
  if (!x.has_memory()) {
    slot = Tensor();
  } else if (x.buffer()->owner == &ctx.allocator()) {
    slot = x;
  } else {
    INTERP_ASSIGN_OR_RETURN(slot, x.Clone(ctx.allocator()));
  }
  return absl::OkStatus();
}

OpDef FetchDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kAnyDType}},
      .outputs = {{"Out", kTensorArray}},
      .parse = ParseAttrs<FetchAttrs, ReadFetchAttrs>,
      .infer = InferFetch,
      .kernels = {{DType::kUndefined, Fetch}},
      .side_effect = true,
  };
}

INTERP_REGISTER_OP(FetchDef("fetch"));
INTERP_REGISTER_OP(FetchDef("fetch_v2"));

}  // namespace
}  // namespace interp
