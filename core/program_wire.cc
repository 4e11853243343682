#include "core/program_wire.h"

#include <algorithm>
#include <utility>

#include "core/base/overloaded.h"
#include "core/check_var.h"

namespace interp {
namespace {

using AttrDesc = proto::OpDesc::Attr;
using TensorDesc = proto::VarType::TensorDesc;

// --- attributes ---

Scalar ScalarFromProto(const proto::Scalar& desc) {
  switch (desc.type()) {
    case proto::Scalar::BOOLEAN:
      return Scalar{desc.b()};
    case proto::Scalar::LONG:
      return Scalar{desc.i()};
    case proto::Scalar::FLOAT64:
      return Scalar{desc.r()};
    case proto::Scalar::COMPLEX128:
      return Scalar{Complex{desc.c().r(), desc.c().i()}};
  }
  return {};
}

void ScalarToProto(const Scalar& scalar, proto::Scalar* desc) {
  desc->set_type(static_cast<proto::Scalar::Type>(scalar.value.index() + 1));
  std::visit(Overloaded{[&](bool v) { desc->set_b(v); }, [&](int64_t v) { desc->set_i(v); },
                        [&](double v) { desc->set_r(v); },
                        [&](Complex v) {
                          desc->mutable_c()->set_r(v.real);
                          desc->mutable_c()->set_i(v.imag);
                        }},
             scalar.value);
}

// True when ScalarToProto makes an equal message of what ScalarFromProto gives.
bool IsPlain(const proto::Scalar& desc) {
  const bool own_field[] = {desc.has_b(), desc.has_i(), desc.has_r(), desc.has_c()};
  return std::count(std::begin(own_field), std::end(own_field), true) == 1 &&
         own_field[desc.type() - 1] && desc.unknown_fields().empty() &&
         desc.c().unknown_fields().empty();
}

template <typename T>
std::vector<T> ToVector(const google::protobuf::RepeatedField<T>& field) {
  return {field.begin(), field.end()};
}

std::vector<std::string> ToVector(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

// A value with the number of set fields it accounts for: 1, or 0 for an empty list. kNotPlain when
// writing the value would not give the field back as it was.
struct Decoded {
  AttrValue value;
  int fields = 1;
};
constexpr int kNotPlain = -1;

template <int kKind, typename T>
Decoded Single(bool present, T value) {
  return {AttrValue(std::in_place_index<kKind>, std::move(value)), present ? 1 : kNotPlain};
}

template <int kKind, typename Field>
Decoded List(const Field& field) {
  using Value = std::variant_alternative_t<kKind, AttrVariant>;
  return {AttrValue(std::in_place_index<kKind>, Value{ToVector(field)}), field.empty() ? 0 : 1};
}

Decoded ScalarsFromProto(const AttrDesc& desc) {
  std::vector<Scalar> scalars;
  scalars.reserve(desc.scalars_size());
  int fields = desc.scalars().empty() ? 0 : 1;
  for (const proto::Scalar& item : desc.scalars()) {
    scalars.push_back(ScalarFromProto(item));
    if (!IsPlain(item)) fields = kNotPlain;
  }
  return {std::move(scalars), fields};
}

// The value of the kind `desc` says, from the one field that belongs to it.
// Long because there are 18 kinds.
Decoded ValueFromProto(const AttrDesc& desc) {
  switch (desc.type()) {
    case proto::INT:
      return Single<proto::INT>(desc.has_i(), desc.i());
    case proto::FLOAT:
      return Single<proto::FLOAT>(desc.has_f(), desc.f());
    case proto::STRING:
      return Single<proto::STRING>(desc.has_s(), desc.s());
    case proto::INTS:
      return List<proto::INTS>(desc.ints());
    case proto::FLOATS:
      return List<proto::FLOATS>(desc.floats());
    case proto::STRINGS:
      return List<proto::STRINGS>(desc.strings());
    case proto::BOOLEAN:
      return Single<proto::BOOLEAN>(desc.has_b(), desc.b());
    case proto::BOOLEANS:
      return List<proto::BOOLEANS>(desc.bools());
    case proto::BLOCK:
      return Single<proto::BLOCK>(desc.has_block_idx(), BlockIndex{desc.block_idx()});
    case proto::LONG:
      return Single<proto::LONG>(desc.has_l(), desc.l());
    case proto::BLOCKS:
      return List<proto::BLOCKS>(desc.blocks_idx());
    case proto::LONGS:
      return List<proto::LONGS>(desc.longs());
    case proto::FLOAT64S:
      return List<proto::FLOAT64S>(desc.float64s());
    case proto::VAR:
      return Single<proto::VAR>(desc.has_var_name(), VarName{desc.var_name()});
    case proto::VARS:
      return List<proto::VARS>(desc.vars_name());
    case proto::FLOAT64:
      return Single<proto::FLOAT64>(desc.has_float64(), desc.float64());
    case proto::SCALAR:
      return Single<proto::SCALAR>(desc.has_scalar() && IsPlain(desc.scalar()),
                                   ScalarFromProto(desc.scalar()));
    case proto::SCALARS:
      return ScalarsFromProto(desc);
  }
  return {};
}

// Number of value fields that are set, whatever kind they belong to.
int CountValueFields(const AttrDesc& desc) {
  return desc.has_i() + desc.has_f() + desc.has_s() + desc.has_b() + desc.has_block_idx() +
         desc.has_l() + desc.has_var_name() + desc.has_float64() + desc.has_scalar() +
         !desc.ints().empty() + !desc.floats().empty() + !desc.strings().empty() +
         !desc.bools().empty() + !desc.blocks_idx().empty() + !desc.longs().empty() +
         !desc.float64s().empty() + !desc.vars_name().empty() + !desc.scalars().empty();
}

template <typename List, typename Field>
void CopyList(const List& list, Field* field) {
  field->Clear();
  field->Reserve(static_cast<int>(list.size()));
  for (const auto& item : list) *field->Add() = item;
}

// Writes the field that belongs to the kind of `value`; other fields stay.
void ValueToProto(const AttrValue& value, AttrDesc* desc) {
  std::visit(Overloaded{
                 [&](int32_t v) { desc->set_i(v); },
                 [&](float v) { desc->set_f(v); },
                 [&](const std::string& v) { desc->set_s(v); },
                 [&](const std::vector<int32_t>& v) { CopyList(v, desc->mutable_ints()); },
                 [&](const std::vector<float>& v) { CopyList(v, desc->mutable_floats()); },
                 [&](const std::vector<std::string>& v) { CopyList(v, desc->mutable_strings()); },
                 [&](bool v) { desc->set_b(v); },
                 [&](const std::vector<bool>& v) { CopyList(v, desc->mutable_bools()); },
                 [&](BlockIndex v) { desc->set_block_idx(v.index); },
                 [&](int64_t v) { desc->set_l(v); },
                 [&](const BlockIndices& v) { CopyList(v.indices, desc->mutable_blocks_idx()); },
                 [&](const std::vector<int64_t>& v) { CopyList(v, desc->mutable_longs()); },
                 [&](const std::vector<double>& v) { CopyList(v, desc->mutable_float64s()); },
                 [&](const VarName& v) { desc->set_var_name(v.name); },
                 [&](const VarNames& v) { CopyList(v.names, desc->mutable_vars_name()); },
                 [&](double v) { desc->set_float64(v); },
                 [&](const Scalar& v) { ScalarToProto(v, desc->mutable_scalar()); },
                 [&](const std::vector<Scalar>& v) {
                   desc->clear_scalars();
                   for (const Scalar& scalar : v) ScalarToProto(scalar, desc->add_scalars());
                 },
             },
             value);
  desc->set_type(static_cast<proto::AttrType>(value.index()));
}

// --- variables ---

// What a VarDesc says of the elements of a tensor kind.
struct Elements {
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  int32_t lod_level = 0;
  bool operator==(const Elements&) const = default;
};

Elements ElementsOf(const TensorDesc& desc, int32_t lod_level) {
  Elements out;
  if (desc.has_data_type()) {
    out.dtype = DTypeFromCode(desc.data_type()).value_or(DType::kUndefined);
  }
  // Shape inference of old versions multiplies by -1: [-1,1917] flattened has dim -1917.
  for (const int64_t dim : desc.dims()) out.dims.push_back(std::max<int64_t>(dim, -1));
  out.lod_level = lod_level;
  return out;
}

Elements ElementsOf(const proto::VarType& type) {
  switch (type.type()) {
    case proto::VarType::LOD_TENSOR:
      return ElementsOf(type.lod_tensor().tensor(), type.lod_tensor().lod_level());
    case proto::VarType::LOD_TENSOR_ARRAY:
      return ElementsOf(type.tensor_array().tensor(), type.tensor_array().lod_level());
    case proto::VarType::SELECTED_ROWS:
      return ElementsOf(type.selected_rows(), 0);
    case proto::VarType::SPARSE_COO:
      return ElementsOf(type.sparse_coo(), 0);
    case proto::VarType::SPARSE_CSR:
      return ElementsOf(type.sparse_csr(), 0);
    default:
      return {};
  }
}

void SetElements(const Elements& elements, TensorDesc* desc) {
  desc->set_data_type(static_cast<proto::VarType::Type>(elements.dtype));
  CopyList(elements.dims, desc->mutable_dims());
}

template <typename LodDesc>
void SetLodElements(const Elements& elements, LodDesc* desc) {
  SetElements(elements, desc->mutable_tensor());
  if (desc->lod_level() != elements.lod_level) desc->set_lod_level(elements.lod_level);
}

// Makes ElementsOf(*type) equal to `elements`. A dtype that is not known cannot be written.
void SetElements(const Elements& elements, proto::VarType* type) {
  if (elements.dtype == DType::kUndefined || ElementsOf(*type) == elements) return;
  switch (type->type()) {
    case proto::VarType::LOD_TENSOR:
      return SetLodElements(elements, type->mutable_lod_tensor());
    case proto::VarType::LOD_TENSOR_ARRAY:
      return SetLodElements(elements, type->mutable_tensor_array());
    case proto::VarType::SELECTED_ROWS:
      return SetElements(elements, type->mutable_selected_rows());
    case proto::VarType::SPARSE_COO:
      return SetElements(elements, type->mutable_sparse_coo());
    case proto::VarType::SPARSE_CSR:
      return SetElements(elements, type->mutable_sparse_csr());
    default:
      return;
  }
}

// True for the values of VarType.Type that are kinds of variables, see VarKind.
bool IsVarKind(proto::VarType::Type type) {
  return type != proto::VarType::PSTRING && !DTypeFromCode(type).has_value();
}

}  // namespace

Attr AttrFromProto(const AttrDesc& desc) {
  Decoded decoded = ValueFromProto(desc);
  const bool plain = desc.unknown_fields().empty() && CountValueFields(desc) == decoded.fields;
  return {desc.name(), std::move(decoded.value), plain ? std::string() : desc.SerializeAsString()};
}

void AttrToProto(const Attr& attr, AttrDesc* desc) {
  if (!attr.wire.empty()) {
    ParsePartial(attr.wire.view(), desc);
    if (desc->IsInitialized() && AttrFromProto(*desc) == attr) return;
  }
  if (desc->type() != static_cast<proto::AttrType>(attr.value.index())) desc->Clear();
  desc->set_name(attr.name);
  ValueToProto(attr.value, desc);
}

absl::StatusOr<Var> VarFromProto(const proto::VarDesc& desc, absl::string_view wire) {
  if (!IsVarKind(desc.type().type())) {
    return InvalidArgument("its kind is ", proto::VarType::Type_Name(desc.type().type()),
                           ", an element type");
  }
  Elements elements = ElementsOf(desc.type());
  Var var;
  var.kind = static_cast<VarKind>(desc.type().type());
  var.dtype = elements.dtype;
  var.dims = std::move(elements.dims);
  var.lod_level = elements.lod_level;
  var.persistable = desc.persistable();
  var.need_check_feed = desc.need_check_feed();
  var.is_parameter = desc.is_parameter();
  var.stop_gradient = desc.stop_gradient();
  INTERP_RETURN_IF_ERROR(CheckVar(var));
  proto::VarDesc made;
  VarToProto(var, desc.name(), &made);
  if (made.SerializePartialAsString() != wire) var.wire = std::string(wire);
  return var;
}

void VarToProto(const Var& var, const std::string& name, proto::VarDesc* desc) {
  ParsePartial(var.wire.view(), desc);
  if (desc->name() != name) desc->set_name(name);
  const auto kind = static_cast<proto::VarType::Type>(var.kind);
  if (!desc->type().has_type() || desc->type().type() != kind) desc->mutable_type()->set_type(kind);
  SetElements({var.dtype, var.dims, var.lod_level}, desc->mutable_type());
  if (desc->persistable() != var.persistable) desc->set_persistable(var.persistable);
  if (desc->need_check_feed() != var.need_check_feed)
    desc->set_need_check_feed(var.need_check_feed);
  if (desc->is_parameter() != var.is_parameter) desc->set_is_parameter(var.is_parameter);
  if (desc->stop_gradient() != var.stop_gradient) desc->set_stop_gradient(var.stop_gradient);
}

}  // namespace interp
