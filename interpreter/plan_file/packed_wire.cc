#include "interpreter/plan_file/packed_wire.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/escaping.h"
#include "core/io/param_decl.h"

namespace interp {
namespace {

namespace wire = proto::plan;

constexpr uint64_t kTensorAlignment = kBufferAlignment;

absl::Status EncodeTensor(const Tensor& tensor, uint64_t checksum, uint64_t& end,
                          wire::PackedTensor* to, std::vector<PlacedTensor>& placed) {
  if (!tensor.place().on_host() || !tensor.lod.empty() || SizeOf(tensor.dtype) == 0) {
    return InvalidArgument(DescribeType(tensor), tensor.lod.empty() ? "" : " with a LoD",
                           " cannot be kept in a plan file");
  }
  to->set_dtype(static_cast<int32_t>(tensor.dtype));
  to->set_layout(static_cast<int32_t>(tensor.layout));
  for (const int64_t dim : tensor.shape) to->add_dims(dim);
  to->set_offset(end);
  to->set_checksum(checksum);
  placed.emplace_back(end, tensor);
  end += tensor.size_bytes();
  end += (kTensorAlignment - end % kTensorAlignment) % kTensorAlignment;
  return absl::OkStatus();
}

// A bool may only be 0 or 1, in a file it may be anything.
bool HoldsBools(const Tensor& tensor) {
  const auto* const values = static_cast<const uint8_t*>(tensor.raw_data());
  return std::all_of(values, values + tensor.numel(), [](uint8_t value) { return value <= 1; });
}

class PackedDecoder {
 public:
  PackedDecoder(const wire::Packed& from, const PackedData& data, const CompiledProgram& compiled)
      : from_(from), data_(data), compiled_(compiled) {}

  absl::StatusOr<std::shared_ptr<const PackedConstants>> Decode() {
    auto packed = std::make_shared<PackedConstants>();
    packed->machine = absl::Utf8SafeCEscape(from_.machine());
    const std::vector<ParamDecl> declared = ParamsOf(compiled_.program);
    for (const wire::PackedParameter& parameter : from_.parameters()) {
      const std::string name = absl::Utf8SafeCEscape(parameter.name());
      absl::StatusOr<Tensor> tensor = ReadParameter(parameter, declared);
      if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("parameter '", name, "'"));
      if (!packed->parameters.empty() && packed->parameters.back().first >= parameter.name()) {
        return InvalidArgument("parameter '", name, "' is out of order");
      }
      packed->parameters.emplace_back(parameter.name(), *std::move(tensor));
      packed->parameter_checksums.push_back(parameter.tensor().checksum());
    }
    for (const wire::PackedEntry& entry : from_.entries()) {
      INTERP_RETURN_IF_ERROR(ReadEntry(entry, *packed));
    }
    return std::shared_ptr<const PackedConstants>(std::move(packed));
  }

 private:
  absl::StatusOr<Tensor> ReadParameter(const wire::PackedParameter& parameter,
                                       const std::vector<ParamDecl>& declared) {
    const auto it = std::lower_bound(
        declared.begin(), declared.end(), parameter.name(),
        [](const ParamDecl& param, const std::string& name) { return param.name < name; });
    if (it == declared.end() || it->name != parameter.name()) {
      return InvalidArgument("the program has none of that name");
    }
    INTERP_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(parameter.tensor()));
    // Passes may have removed what writes it, which allows other dims of 1.
    ParamDecl written = *it;
    written.written = true;
    INTERP_RETURN_IF_ERROR(CheckDeclared(tensor.dtype, tensor.shape, written));
    if (tensor.layout != Layout::kPlain) return InvalidArgument("it is not plain");
    return tensor;
  }

  absl::Status ReadEntry(const wire::PackedEntry& from, PackedConstants& packed) {
    PackedEntry entry{.instruction = from.instruction(), .key = from.key()};
    const auto where = [&entry] {
      return absl::StrCat("packed constants ", entry.instruction, ", ", entry.key);
    };
    if (!packed.entries.empty()) {
      const PackedEntry& last = packed.entries.back();
      if (std::pair(last.instruction, last.key) >= std::pair(entry.instruction, entry.key)) {
        return InvalidArgument(where(), " are out of order");
      }
    }
    entry.vars.assign(from.vars().begin(), from.vars().end());
    for (const wire::PackedTensor& wanted : from.tensors()) {
      absl::StatusOr<Tensor> tensor = ReadTensor(wanted);
      if (!tensor.ok()) return Annotate(tensor.status(), where());
      entry.tensors.push_back(*std::move(tensor));
      entry.checksums.push_back(wanted.checksum());
    }
    INTERP_RETURN_IF_ERROR(Annotate(CheckPackedEntry(compiled_.plans, entry), where()));
    packed.entries.push_back(std::move(entry));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> ReadTensor(const wire::PackedTensor& from) {
    const std::optional<DType> dtype = DTypeFromCode(from.dtype());
    const bool channels_last = from.layout() == static_cast<int32_t>(Layout::kChannelsLast);
    if (!dtype.has_value() || static_cast<int32_t>(*dtype) != from.dtype() ||
        (from.layout() != 0 && !channels_last) || from.dims_size() > kMaxRank ||
        (channels_last && from.dims_size() != 4 && from.dims_size() != 5)) {
      return InvalidArgument("a tensor has dtype ", from.dtype(), ", layout ", from.layout(),
                             " and ", from.dims_size(), " dims");
    }
    Tensor tensor;
    tensor.dtype = *dtype;
    tensor.layout = channels_last ? Layout::kChannelsLast : Layout::kPlain;
    for (const int64_t dim : from.dims()) tensor.shape.push_back(dim);
    const std::optional<int64_t> numel = tensor.shape.CheckedNumel();
    if (!numel.has_value()) return InvalidArgument("a tensor has shape ", ToString(tensor.shape));
    const auto size_bytes = static_cast<uint64_t>(*numel) * SizeOf(*dtype);
    if (from.offset() % kTensorAlignment != 0 || from.offset() > data_.size_bytes ||
        size_bytes > data_.size_bytes - from.offset()) {
      return InvalidArgument("a tensor of ", size_bytes, " bytes lies at ", from.offset(), " of ",
                             data_.size_bytes);
    }
    char* const data = static_cast<char*>(data_.file->data) + data_.begin + from.offset();
    tensor.SetMemory(data_.file, data);
    if (*dtype == DType::kBool && !HoldsBools(tensor)) {
      return InvalidArgument("a bool is neither 0 nor 1");
    }
    return tensor;
  }

  const wire::Packed& from_;
  const PackedData& data_;
  const CompiledProgram& compiled_;
};

}  // namespace

absl::StatusOr<std::vector<PlacedTensor>> EncodePacked(const PackedConstants& packed,
                                                       wire::Packed& to) {
  std::vector<PlacedTensor> placed;
  uint64_t end = 0;
  to.set_machine(packed.machine);
  for (size_t i = 0; i < packed.parameters.size(); ++i) {
    const auto& [name, tensor] = packed.parameters[i];
    wire::PackedParameter* const parameter = to.add_parameters();
    parameter->set_name(name);
    INTERP_RETURN_IF_ERROR(Annotate(EncodeTensor(tensor, packed.parameter_checksums[i], end,
                                                 parameter->mutable_tensor(), placed),
                                    absl::StrCat("parameter '", name, "'")));
  }
  for (const auto& [instruction, key, vars, tensors, checksums] : packed.entries) {
    wire::PackedEntry* const entry = to.add_entries();
    entry->set_instruction(instruction);
    entry->set_key(key);
    for (const VarId var : vars) entry->add_vars(var);
    for (size_t i = 0; i < tensors.size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          EncodeTensor(tensors[i], checksums[i], end, entry->add_tensors(), placed));
    }
  }
  to.set_data_bytes(end);
  return placed;
}

absl::StatusOr<std::shared_ptr<const PackedConstants>> DecodePacked(
    const wire::Packed& from, const PackedData& data, const CompiledProgram& compiled) {
  const auto first = reinterpret_cast<uintptr_t>(data.file->data) + data.begin;
  if (first % kTensorAlignment != 0) return InvalidArgument("its data are not aligned");
  return PackedDecoder(from, data, compiled).Decode();
}

}  // namespace interp
