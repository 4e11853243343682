// tril_indices, triu_indices: out = the rows and columns of the elements of a matrix on and below
// (above) the diagonal `offset`, row after row.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOut = 0;

struct TriangleAttrs {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t offset = 0;
  DType dtype = DType::kInt64;
  bool lower = true;

  // The columns [Begin, End) of a row that belong to the triangle.
  int64_t Begin(int64_t row) const {
    return lower ? 0 : std::clamp<int64_t>(row + offset, 0, columns);
  }
  int64_t End(int64_t row) const {
    return lower ? std::clamp<int64_t>(row + offset + 1, 0, columns) : columns;
  }
};

TriangleAttrs Checked(AttrReader& reader, const TriangleAttrs& attrs) {
  if (attrs.rows < 0 || attrs.columns < 0) {
    reader.Fail(absl::StrCat("the matrix has ", attrs.rows, " rows and ", attrs.columns,
                             " columns, expected 0 or more"));
  }
  return attrs;
}

TriangleAttrs ReadTrilAttrs(AttrReader& reader) {
  return Checked(reader, {reader.Int("rows", 0), reader.Int("cols", 0), reader.Int("offset", 0),
                          reader.Type("dtype", DType::kInt64), true});
}
TriangleAttrs ReadTriuAttrs(AttrReader& reader) {
  return Checked(reader, {reader.Int("row", 0), reader.Int("col", 0), reader.Int("offset", 0),
                          reader.Type("dtype", DType::kInt64), false});
}

DType TriangleDType(const DTypeContext& ctx) { return ctx.attrs<TriangleAttrs>().dtype; }

absl::Status InferTriangle(InferContext& ctx) {
  const TriangleAttrs& attrs = ctx.attrs<TriangleAttrs>();
  INTERP_RETURN_IF_ERROR(CheckedProduct(attrs.rows, attrs.columns).status());
  int64_t count = 0;
  for (int64_t row = 0; row < attrs.rows; ++row) count += attrs.End(row) - attrs.Begin(row);
  ctx.SetShape(kOut, {2, count});
  return absl::OkStatus();
}

template <typename T>
absl::Status Triangle(KernelContext& ctx) {
  const TriangleAttrs& attrs = ctx.attrs<TriangleAttrs>();
  Tensor& out = ctx.output(kOut);
  T* rows = out.mutable_data<T>();
  T* columns = rows + out.shape[1];
  for (int64_t row = 0; row < attrs.rows; ++row) {
    for (int64_t column = attrs.Begin(row); column < attrs.End(row); ++column) {
      *rows++ = static_cast<T>(row);
      *columns++ = static_cast<T>(column);
    }
  }
  return absl::OkStatus();
}

OpDef TriangleDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {},
      .outputs = {{"out"}},
      .parse = parse,
      .kernel_dtype = TriangleDType,
      .infer = InferTriangle,
      .kernels = {{DType::kInt32, Triangle<int32_t>}, {DType::kInt64, Triangle<int64_t>}},
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(TriangleDef("tril_indices", ParseAttrs<TriangleAttrs, ReadTrilAttrs>));
INTERP_REGISTER_OP(TriangleDef("triu_indices", ParseAttrs<TriangleAttrs, ReadTriuAttrs>));

}  // namespace
}  // namespace interp
