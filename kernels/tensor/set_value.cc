// set_value: Out = Input with Input[starts:ends:steps along `axes`] replaced by a value, which is
// broadcast to that part. Dimensions in `decrease_axes` are indexed, and `none_axes` are new
// dimensions of length 1, as in x[2, :, None] = value. The value is ValueTensor, or attributes.
#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "core/op_def.h"
#include "kernels/tensor/set_value_attrs.h"
#include "kernels/util/copy.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

using set_value::kInput;
using set_value::kPartSlots;
using set_value::kValueTensor;
using set_value::SetValueAttrs;

constexpr int kOut = 0;

std::complex<double> ComplexOf(const Scalar& scalar) {
  return std::visit(
      [](const auto& value) -> std::complex<double> {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Complex>) {
          return {value.real, value.imag};
        } else {
          return static_cast<double>(value);
        }
      },
      scalar.value);
}

std::vector<std::complex<double>> ReadComplexValues(AttrReader& reader) {
  const Attr* const attr = reader.op().FindAttr("values");
  std::vector<std::complex<double>> values;
  if (attr == nullptr) return values;
  const auto* const scalars = std::get_if<std::vector<Scalar>>(&attr->value);
  if (scalars == nullptr) {
    reader.Fail("attribute 'values' is no list of scalars");
    return values;
  }
  for (const Scalar& scalar : *scalars) values.push_back(ComplexOf(scalar));
  return values;
}

// `value` as one element of `dtype`: of others than complex numbers, its real part.
ScalarBytes ComplexBytes(DType dtype, std::complex<double> value) {
  if (dtype == DType::kBool) return ToScalarBytes(dtype, static_cast<int64_t>(value != 0.0));
  ScalarBytes scalar = ToScalarBytes(dtype, value.real());
  if (dtype == DType::kComplex64) {
    const std::complex<float> narrow(value);
    std::memcpy(scalar.bytes.data(), &narrow, sizeof(narrow));
  } else if (dtype == DType::kComplex128) {
    std::memcpy(scalar.bytes.data(), &value, sizeof(value));
  }
  return scalar;
}

// Whether `values` lists scalars of that kind.
template <typename Kind>
bool AnyIs(const AttrReader& reader) {
  const Attr* const attr = reader.op().FindAttr("values");
  if (attr == nullptr) return false;
  const auto* const scalars = std::get_if<std::vector<Scalar>>(&attr->value);
  return scalars != nullptr && absl::c_any_of(*scalars, [](const Scalar& scalar) {
           return std::holds_alternative<Kind>(scalar.value);
         });
}

// Newer programs write `values`, whose kinds are those of the array that was assigned, whatever
// `dtype` they become; before, every dtype had a list of its own.
void ReadValues(AttrReader& reader, SetValueAttrs& attrs) {
  const DType dtype = reader.Type("dtype", DType::kFloat32);
  for (const char* name : {"fp32_values", "fp64_values", "fp16_values"}) {
    if (attrs.floats.empty()) attrs.floats = reader.Doubles(name);
  }
  for (const char* name : {"int32_values", "int64_values", "bool_values"}) {
    if (attrs.floats.empty() && attrs.integers.empty()) attrs.integers = reader.Ints(name);
  }
  if (!attrs.floats.empty() || !attrs.integers.empty()) return;
  const bool to_complex = IsComplex(dtype);
  if (to_complex || AnyIs<Complex>(reader)) {
    attrs.complexes = ReadComplexValues(reader);
  } else if (IsFloating(dtype) || AnyIs<double>(reader)) {
    attrs.floats = reader.Doubles("values");
  } else {
    attrs.integers = reader.Ints("values");
  }
}

SetValueAttrs ReadSetValueAttrs(AttrReader& reader) {
  SetValueAttrs attrs;
  attrs.part = set_value::ReadPartAttrs(reader);
  ReadValues(reader, attrs);
  const std::vector<int64_t> shape = reader.Ints("shape");
  if (shape.size() > kMaxRank) {
    reader.Fail(absl::StrCat("attribute 'shape' has ", shape.size(), " dims, at most ", kMaxRank));
    return attrs;
  }
  attrs.shape = Shape(shape);
  const std::optional<int64_t> wanted = attrs.shape.CheckedNumel();
  const size_t count = attrs.count();
  if (count != 0 && (!wanted.has_value() || static_cast<size_t>(*wanted) != count)) {
    reader.Fail(
        absl::StrCat("attributes list ", count, " values for shape ", ToString(attrs.shape)));
  }
  return attrs;
}

absl::Status InferSetValue(InferContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const SetValueAttrs& attrs = ctx.attrs<SetValueAttrs>();
  if (input.shape.rank() == 0) return InvalidArgument("input 'Input' has rank 0");
  if (!ctx.has_input(kValueTensor) && attrs.count() == 0) {
    return InvalidArgument("there is no 'ValueTensor' and no attribute with values");
  }
  // Without a LoD, but what is set in place keeps its own.
  if (&ctx.output(kOut) != &input) ctx.SetShape(kOut, input.shape);
  return absl::OkStatus();
}

absl::Status SetValue(KernelContext& ctx) {
  const SetValueAttrs& attrs = ctx.attrs<SetValueAttrs>();
  Tensor& out = ctx.output(kOut);
  const Tensor* tensor = ctx.optional_input(kValueTensor);
  Tensor copy;  // of a value that Out overwrites
  if (tensor != nullptr && tensor->raw_data() == out.raw_data()) {
    INTERP_ASSIGN_OR_RETURN(copy, tensor->Clone(ctx.allocator()));
    tensor = &copy;
  }
  CopyUnlessShared(ctx.input(kInput), out);
  INTERP_ASSIGN_OR_RETURN(const set_value::Ranges ranges,
                          set_value::ResolveRanges(ctx, kPartSlots, attrs.part, out.shape));
  if (set_value::IsEmpty(ranges)) return absl::OkStatus();  // whatever the value
  INTERP_ASSIGN_OR_RETURN(const set_value::Part part,
                          set_value::LayOut(attrs.part, ranges, StridesOf(out),
                                            tensor != nullptr ? tensor->shape : attrs.shape));
  const size_t bytes = SizeOf(out.dtype);
  std::vector<std::byte> listed;
  if (tensor == nullptr) listed = set_value::ValuesAs(out.dtype, attrs);
  const void* const from = tensor != nullptr ? tensor->raw_data() : listed.data();
  CopyStrided(ctx.num_threads(), bytes, part.dims, At(from, part.value_start, bytes),
              At(out.mutable_raw_data(), part.start, bytes));
  return absl::OkStatus();
}

constexpr int kBounds = kOptional | kVariadic | kAnyDType | kHostInput;

INTERP_REGISTER_OP(OpDef{
    .type = "set_value",
    .inputs = {{"Input"},
               {"ValueTensor", kOptional},
               {"StartsTensorList", kBounds},
               {"EndsTensorList", kBounds},
               {"StepsTensorList", kBounds}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SetValueAttrs, ReadSetValueAttrs>,
    .infer = InferSetValue,
    .kernels = {{DType::kUndefined, SetValue}},
    .inplace = {{kInput, kOut}},
    .gradient = {.inputs = {"ValueTensor", "StartsTensorList", "EndsTensorList", "StepsTensorList",
                            "Out@GRAD"},
                 .outputs = {"Input@GRAD", "ValueTensor@GRAD"}},
});

}  // namespace

std::vector<std::byte> set_value::ValuesAs(DType dtype, const SetValueAttrs& attrs) {
  std::vector<std::byte> bytes;
  const auto append = [&](const ScalarBytes& scalar) {
    bytes.insert(bytes.end(), scalar.bytes.begin(), scalar.bytes.begin() + SizeOf(dtype));
  };
  for (const double value : attrs.floats) append(ToScalarBytes(dtype, value));
  for (const int64_t value : attrs.integers) append(ToScalarBytes(dtype, value));
  for (const std::complex<double> value : attrs.complexes) append(ComplexBytes(dtype, value));
  return bytes;
}

}  // namespace interp
