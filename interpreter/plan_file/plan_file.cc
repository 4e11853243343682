#include "interpreter/plan_file/plan_file.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "core/base/annotate.h"
#include "core/device/device_maker.h"
#include "core/io/file.h"
#include "core/io/params.h"
#include "interpreter/plan_file/packed_wire.h"
#include "interpreter/plan_file/plan_wire.h"
#include "interpreter/verify/verify_plan.h"

namespace interp {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers of the header are little-endian");

constexpr absl::string_view kMagic = "INTERPLN";
constexpr uint32_t kFormatVersion = 6;
constexpr uint64_t kChecksumSeed = 1;

// In front of the payload. Its numbers are little-endian.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;  // 0
  uint64_t payload_bytes;
  uint64_t checksum;  // XXH64 of the payload, seed 1
};
static_assert(sizeof(Header) == 32);

// The payload, when the header says that it is whole. More may follow it.
absl::StatusOr<absl::string_view> CheckHeader(absl::string_view bytes) {
  if (!IsPlanFile(bytes)) return DataLoss("not a plan file");
  Header header;
  if (bytes.size() < sizeof(header)) {
    return DataLoss("cut off: it has ", bytes.size(), " bytes, less than a header");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("written in plan format ", header.version,
                                                      ", this build reads ", kFormatVersion,
                                                      ": compile it again"));
  }
  const absl::string_view rest = bytes.substr(sizeof(header));
  if (header.reserved != 0 || rest.size() < header.payload_bytes) {
    return DataLoss("cut off or damaged: ", rest.size(), " bytes follow the header, which says ",
                    header.payload_bytes);
  }
  const absl::string_view payload = rest.substr(0, header.payload_bytes);
  if (XXH64(payload.data(), payload.size(), kChecksumSeed) != header.checksum) {
    return DataLoss("damaged: the checksum differs");
  }
  return payload;
}

size_t DataBegin(size_t payload_bytes) {
  const size_t end = sizeof(Header) + payload_bytes;
  return end + (kPackedDataAlignment - end % kPackedDataAlignment) % kPackedDataAlignment;
}

// What follows the payload, when it is what the payload says.
absl::StatusOr<PackedData> FindData(const BufferRef& file, size_t payload_bytes,
                                    const proto::plan::PlanFile& message) {
  const size_t end = sizeof(Header) + payload_bytes;
  const size_t begin = message.has_packed() ? DataBegin(payload_bytes) : end;
  const uint64_t size_bytes = message.packed().data_bytes();
  if (file->size_bytes < begin || file->size_bytes - begin != size_bytes) {
    return DataLoss("cut off or damaged: ", file->size_bytes, " bytes, expected ", begin, " and ",
                    size_bytes, " of packed constants");
  }
  const absl::string_view between(static_cast<const char*>(file->data) + end, begin - end);
  if (between.find_first_not_of('\0') != absl::string_view::npos) {
    return DataLoss("damaged: bytes that are no part of it");
  }
  return PackedData{.file = file, .begin = begin, .size_bytes = static_cast<size_t>(size_bytes)};
}

// A plan file in parts.
struct FormattedPlan {
  std::string head;  // up to the data
  std::vector<PlacedTensor> tensors;
  uint64_t data_bytes = 0;
};

absl::StatusOr<FormattedPlan> FormatParts(const CompiledProgram& compiled) {
  FormattedPlan parts;
  proto::plan::PlanFile file;
  INTERP_RETURN_IF_ERROR(EncodePlan(compiled, file));
  if (compiled.packed != nullptr) {
    INTERP_ASSIGN_OR_RETURN(parts.tensors, EncodePacked(*compiled.packed, *file.mutable_packed()));
    parts.data_bytes = file.packed().data_bytes();
  }
  const size_t payload_bytes = file.ByteSizeLong();
  if (payload_bytes > std::numeric_limits<int32_t>::max()) {
    return ResourceExhausted("the plan would have ", payload_bytes, " bytes, more than 2 GiB");
  }
  parts.head.assign(sizeof(Header), '\0');
  file.AppendToString(&parts.head);
  Header header{
      .magic = {},
      .version = kFormatVersion,
      .reserved = 0,
      .payload_bytes = payload_bytes,
      .checksum = XXH64(parts.head.data() + sizeof(Header), payload_bytes, kChecksumSeed)};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::memcpy(parts.head.data(), &header, sizeof(header));
  if (compiled.packed != nullptr) parts.head.resize(DataBegin(payload_bytes), '\0');
  return parts;
}

// Calls append(bytes) with the file's parts in order.
template <typename Append>
absl::Status WriteParts(const FormattedPlan& parts, const Append& append) {
  INTERP_RETURN_IF_ERROR(append(parts.head));
  uint64_t end = 0;
  for (const auto& [offset, tensor] : parts.tensors) {
    INTERP_RETURN_IF_ERROR(append(std::string(offset - end, '\0')));
    const size_t size_bytes = tensor.size_bytes();
    if (size_bytes > 0) {
      const auto* const bytes = static_cast<const char*>(tensor.raw_data());
      INTERP_RETURN_IF_ERROR(append(absl::string_view(bytes, size_bytes)));
    }
    end = offset + size_bytes;
  }
  return append(std::string(parts.data_bytes - end, '\0'));
}

// What streams have a place of; DecodePlan refuses other codes.
absl::Status PreparePlaces(const proto::plan::PlanFile& message, PreparePlace prepare) {
  absl::flat_hash_set<PlaceKind> prepared = {PlaceKind::kCpu};
  for (const proto::plan::Plan& plan : message.plans()) {
    for (const proto::plan::Stream& stream : plan.streams()) {
      Place place;
      INTERP_RETURN_IF_ERROR(ReadPlace(stream.place(), &place));
      if (prepared.insert(place.kind).second) INTERP_RETURN_IF_ERROR(prepare(place));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPlanFile(absl::string_view bytes) { return bytes.substr(0, kMagic.size()) == kMagic; }

absl::StatusOr<std::string> FormatPlan(const CompiledProgram& compiled) {
  INTERP_ASSIGN_OR_RETURN(const FormattedPlan parts, FormatParts(compiled));
  std::string bytes;
  INTERP_RETURN_IF_ERROR(WriteParts(parts, [&bytes](absl::string_view part) {
    bytes.append(part.data(), part.size());
    return absl::OkStatus();
  }));
  return bytes;
}

absl::Status RefuseUnloaded(Place place) {
  if (place.kind != PlaceKind::kCuda || FindDeviceMaker(place.kind) != nullptr) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("compiled for ", Name(place),
                   ", and nothing that runs programs on GPUs is loaded (interp::LoadCuda)"));
}

absl::StatusOr<CompiledProgram> ParsePlan(const BufferRef& file, const OpRegistry& ops,
                                          PreparePlace prepare) {
  const absl::string_view bytes(static_cast<const char*>(file->data), file->size_bytes);
  INTERP_ASSIGN_OR_RETURN(const absl::string_view payload, CheckHeader(bytes));
  proto::plan::PlanFile message;
  if (payload.size() > std::numeric_limits<int32_t>::max() ||
      !message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return DataLoss("damaged: the payload is no message of a plan");
  }
  INTERP_ASSIGN_OR_RETURN(const PackedData data, FindData(file, payload.size(), message));
  INTERP_RETURN_IF_ERROR(PreparePlaces(message, prepare));
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, DecodePlan(message, ops));
  if (message.has_packed()) {
    INTERP_ASSIGN_OR_RETURN(compiled.packed, DecodePacked(message.packed(), data, compiled));
  }
  return compiled;
}

absl::StatusOr<CompiledProgram> ParsePlan(absl::string_view bytes, const OpRegistry& ops,
                                          PreparePlace prepare) {
  INTERP_ASSIGN_OR_RETURN(const BufferRef copy, SystemAllocator().Allocate(bytes.size()));
  if (!bytes.empty()) std::memcpy(copy->data, bytes.data(), bytes.size());
  copy->writable = false;
  return ParsePlan(copy, ops, prepare);
}

absl::Status UsePackedConstants(CompiledProgram& compiled, Scope& scope, std::string* note) {
  if (compiled.packed->machine != MachineFingerprint() && !compiled.packed->entries.empty()) {
    *note = absl::StrCat("packed constants are computed anew: the plan has those of ",
                         compiled.packed->machine, ", this is ", MachineFingerprint());
    auto parameters = std::make_shared<PackedConstants>(*compiled.packed);
    parameters->entries.clear();
    compiled.packed = std::move(parameters);
  }
  INTERP_RETURN_IF_ERROR(CheckReadParameters(compiled.plans, *compiled.packed));
  for (const auto& [name, tensor] : compiled.packed->parameters) {
    scope.FindOrCreate(name)->tensor = tensor;
  }
  return absl::OkStatus();
}

absl::Status CheckProved(absl::Span<const Plan> plans) {
  const VerifyReport report = VerifyPlans(plans, {.count_redundancy = false});
  if (!report.structure.ok()) return report.structure;
  return report.proved() ? absl::OkStatus() : InvalidArgument(ToText(plans, report));
}

absl::Status SavePlan(const CompiledProgram& compiled, const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const FormattedPlan parts, Annotate(FormatParts(compiled), path));
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(
      WriteParts(parts, [&file](absl::string_view part) { return file.Append(part); }));
  return file.Commit();
}

namespace {

// Mapped; pipes and devices are read.
absl::StatusOr<CompiledProgram> ParsePlanFile(const std::string& path, const OpRegistry& ops) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
    return ParsePlan(file, ops);
  }
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return ParsePlan(bytes, ops);
}

}  // namespace

absl::StatusOr<CompiledProgram> LoadPlan(const std::string& path, const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(CompiledProgram compiled, Annotate(ParsePlanFile(path, ops), path));
  INTERP_RETURN_IF_ERROR(Annotate(CheckProved(compiled.plans), path));
  return compiled;
}

}  // namespace interp
