// eye: Out[i, j] = 1 where i == j, else 0. num_columns < 0 means as many as rows.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kRows = 0;     // one integer; wins over the attribute
constexpr int kColumns = 1;  // likewise
constexpr int kOut = 0;

struct EyeAttrs {
  int64_t rows = 0;
  int64_t columns = -1;
  DType dtype = DType::kFloat32;
};

EyeAttrs ReadEyeAttrs(AttrReader& reader) {
  const EyeAttrs attrs = {reader.Long("num_rows", 0), reader.Long("num_columns", -1),
                          reader.Type("dtype", DType::kFloat32)};
  return attrs;
}

DType EyeDType(const DTypeContext& ctx) { return ctx.attrs<EyeAttrs>().dtype; }

absl::Status InferEye(InferContext& ctx) {
  const EyeAttrs& attrs = ctx.attrs<EyeAttrs>();
  INTERP_ASSIGN_OR_RETURN(const int64_t rows, ReadInteger(ctx, kRows, "num_rows", attrs.rows));
  INTERP_ASSIGN_OR_RETURN(const int64_t columns,
                          ReadInteger(ctx, kColumns, "num_columns", attrs.columns));
  if (rows < 0) return InvalidArgument("'num_rows' is ", rows, ", expected 0 or more");
  ctx.SetShape(kOut, {rows, columns < 0 ? rows : columns});
  return absl::OkStatus();
}

absl::Status Eye(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  std::memset(out.mutable_raw_data(), 0, out.size_bytes());
  const ScalarBytes one = ToScalarBytes(out.dtype, int64_t{1});
  const CopyDim diagonal = {std::min(out.shape[0], out.shape[1]), 0, out.shape[1] + 1};
  CopyStrided(ctx.num_threads(), SizeOf(out.dtype), absl::MakeConstSpan(&diagonal, 1),
              one.bytes.data(), out.mutable_raw_data());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "eye",
    .inputs = {{"NumRowsTensor", kOptional | kAnyDType | kValueInInfer, "num_rows"},
               {"NumColumnsTensor", kOptional | kAnyDType | kValueInInfer, "num_columns"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<EyeAttrs, ReadEyeAttrs>,
    .kernel_dtype = EyeDType,
    .infer = InferEye,
    .kernels = {{DType::kUndefined, Eye}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
