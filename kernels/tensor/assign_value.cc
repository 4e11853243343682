// assign_value: Out = the values listed in the attributes, of attribute `shape` and `dtype`.
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/scalar_bytes.h"

namespace interp {
namespace {

constexpr int kOut = 0;

struct AssignValueAttrs {
  Shape shape;
  DType dtype = DType::kFloat32;
  std::vector<std::byte> bytes;  // all elements, as they go to Out
};

template <typename T>
void Append(AssignValueAttrs& attrs, const std::vector<T>& values) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  for (const T value : values) {
    const ScalarBytes scalar = ToScalarBytes(attrs.dtype, static_cast<Wide>(value));
    attrs.bytes.insert(attrs.bytes.end(), scalar.bytes.begin(),
                       scalar.bytes.begin() + SizeOf(attrs.dtype));
  }
}

// Every dtype has a list of its own; `values` (any dtype) is what newer programs write.
void ReadValues(AttrReader& reader, AssignValueAttrs& attrs) {
  switch (attrs.dtype) {
    case DType::kBool:
      Append(attrs, reader.Ints("bool_values"));
      break;
    case DType::kInt8:
      Append(attrs, reader.Ints("int8_values"));
      break;
    case DType::kInt64:
      Append(attrs, reader.Ints("int64_values"));
      break;
    case DType::kFloat64:
      Append(attrs, reader.Doubles("fp64_values"));
      break;
    default:
      if (IsFloating(attrs.dtype)) {
        Append(attrs, reader.Floats("fp32_values"));
      } else {
        Append(attrs, reader.Ints("int32_values"));
      }
  }
  if (!attrs.bytes.empty() || !reader.Has("values")) return;
  if (IsFloating(attrs.dtype)) {
    Append(attrs, reader.Doubles("values"));
  } else {
    Append(attrs, reader.Ints("values"));
  }
}

AssignValueAttrs ReadAssignValueAttrs(AttrReader& reader) {
  AssignValueAttrs attrs;
  attrs.dtype = reader.Type("dtype", DType::kFloat32);
  const std::vector<int64_t> dims = reader.Ints("shape");
  if (dims.size() > kMaxRank) {
    reader.Fail(absl::StrCat("attribute 'shape' has ", dims.size(), " dims, at most ", kMaxRank));
    return attrs;
  }
  attrs.shape = Shape(dims);
  ReadValues(reader, attrs);
  const std::optional<int64_t> count = attrs.shape.CheckedNumel();
  if (!count.has_value() || *count * SizeOf(attrs.dtype) != attrs.bytes.size()) {
    reader.Fail(absl::StrCat("attributes list ", attrs.bytes.size() / SizeOf(attrs.dtype),
                             " values for shape ", ToString(attrs.shape)));
  }
  return attrs;
}

DType AssignValueDType(const DTypeContext& ctx) { return ctx.attrs<AssignValueAttrs>().dtype; }

absl::Status InferAssignValue(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.attrs<AssignValueAttrs>().shape);
  return absl::OkStatus();
}

absl::Status AssignValue(KernelContext& ctx) {
  const AssignValueAttrs& attrs = ctx.attrs<AssignValueAttrs>();
  if (attrs.bytes.empty()) return absl::OkStatus();
  std::memcpy(ctx.output(kOut).mutable_raw_data(), attrs.bytes.data(), attrs.bytes.size());
  return absl::OkStatus();
}

// On devices: lists of one value, which a fill makes without a copy from the host.
bool AllValuesAlike(const void* attributes) {
  const auto& attrs = *static_cast<const AssignValueAttrs*>(attributes);
  const size_t step = SizeOf(attrs.dtype);
  const std::vector<std::byte>& bytes = attrs.bytes;
  return bytes.size() <= step || std::equal(bytes.begin() + step, bytes.end(), bytes.begin());
}

absl::Status FillAlike(KernelContext& ctx) {
  const AssignValueAttrs& attrs = ctx.attrs<AssignValueAttrs>();
  if (attrs.bytes.empty()) return absl::OkStatus();
  ScalarBytes value;
  std::copy_n(attrs.bytes.begin(), SizeOf(attrs.dtype), value.bytes.begin());
  return FillElements(ctx, value, ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "assign_value",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<AssignValueAttrs, ReadAssignValueAttrs>,
    .kernel_dtype = AssignValueDType,
    .infer = InferAssignValue,
    .kernels = {{DType::kUndefined, AssignValue},
                DeviceMoveKernel(DType::kUndefined, FillAlike, AllValuesAlike)},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
