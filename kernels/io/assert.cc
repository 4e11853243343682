// assert: fails the run unless Cond is true; the error shows the first `summarize` values of each
// tensor in Data, all of them when that is negative.
#include "core/op_def.h"
#include "kernels/util/tensor_text.h"

namespace interp {
namespace {

constexpr int kCond = 0;
constexpr int kData = 1;

struct AssertAttrs {
  int64_t summarize = -1;
  std::vector<std::string> cond_names;
  std::vector<std::string> data_names;
};

AssertAttrs ReadAssertAttrs(AttrReader& reader) {
  return {reader.Long("summarize", -1), reader.InputNames("Cond"), reader.InputNames("Data")};
}

absl::Status InferAssert(InferContext& ctx) {
  const Tensor& cond = ctx.input(kCond);
  if (cond.dtype == DType::kBool && cond.numel() == 1) return absl::OkStatus();
  return InvalidArgument("input 'Cond' is ", DescribeType(cond), ", expected one bool");
}

// "'x' float32[2] [1 2]"
std::string Describe(const Tensor& tensor, absl::string_view name, int64_t summarize) {
  return absl::StrCat("'", name, "' ", DescribeType(tensor), " ", ValuesText(tensor, summarize));
}

absl::Status Assert(KernelContext& ctx) {
  if (*ctx.input(kCond).data<bool>()) return absl::OkStatus();
  const AssertAttrs& attrs = ctx.attrs<AssertAttrs>();
  std::string text = absl::StrCat("the condition '", attrs.cond_names[0], "' is false");
  const char* separator = "; data: ";
  const absl::Span<const Tensor* const> data = ctx.inputs(kData);
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] == nullptr || i >= attrs.data_names.size()) continue;
    absl::StrAppend(&text, separator, Describe(*data[i], attrs.data_names[i], attrs.summarize));
    separator = ", ";
  }
  return InvalidArgument(text);
}

INTERP_REGISTER_OP(OpDef{
    .type = "assert",
    .inputs = {{"Cond", kAnyDType}, {"Data", kOptional | kVariadic | kAnyDType}},
    .outputs = {},
    .parse = ParseAttrs<AssertAttrs, ReadAssertAttrs>,
    .infer = InferAssert,
    .kernels = {{DType::kUndefined, Assert}},
    .side_effect = true,
    .host_only = true,
});

}  // namespace
}  // namespace interp
