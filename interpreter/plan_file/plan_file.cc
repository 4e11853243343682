#include "interpreter/plan_file/plan_file.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <limits>

#include "core/io/file.h"
#include "interpreter/plan_file/plan_wire.h"
#include "interpreter/verify/verify_plan.h"

namespace interp {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers of the header are little-endian");

constexpr absl::string_view kMagic = "INTERPLN";
constexpr uint32_t kFormatVersion = 4;
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

// The payload, when the header says that it is whole.
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
  const absl::string_view payload = bytes.substr(sizeof(header));
  if (header.reserved != 0 || payload.size() != header.payload_bytes) {
    return DataLoss("cut off or damaged: ", payload.size(), " bytes follow the header, which says ",
                    header.payload_bytes);
  }
  if (XXH64(payload.data(), payload.size(), kChecksumSeed) != header.checksum) {
    return DataLoss("damaged: the checksum differs");
  }
  return payload;
}

}  // namespace

bool IsPlanFile(absl::string_view bytes) { return bytes.substr(0, kMagic.size()) == kMagic; }

absl::StatusOr<std::string> FormatPlan(const CompiledProgram& compiled) {
  proto::plan::PlanFile file;
  INTERP_RETURN_IF_ERROR(EncodePlan(compiled, file));
  const size_t payload_bytes = file.ByteSizeLong();
  if (payload_bytes > std::numeric_limits<int32_t>::max()) {
    return ResourceExhausted("the plan would have ", payload_bytes, " bytes, more than 2 GiB");
  }
  std::string bytes(sizeof(Header), '\0');
  file.AppendToString(&bytes);
  Header header{.magic = {},
                .version = kFormatVersion,
                .reserved = 0,
                .payload_bytes = payload_bytes,
                .checksum = XXH64(bytes.data() + sizeof(Header), payload_bytes, kChecksumSeed)};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

absl::StatusOr<CompiledProgram> ParsePlan(absl::string_view bytes, const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(const absl::string_view payload, CheckHeader(bytes));
  proto::plan::PlanFile file;
  if (payload.size() > std::numeric_limits<int32_t>::max() ||
      !file.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return DataLoss("damaged: the payload is no message of a plan");
  }
  return DecodePlan(file, ops);
}

absl::Status CheckProved(absl::Span<const Plan> plans) {
  const VerifyReport report = VerifyPlans(plans, {.count_redundancy = false});
  if (!report.structure.ok()) return report.structure;
  return report.proved() ? absl::OkStatus() : InvalidArgument(ToText(plans, report));
}

absl::Status SavePlan(const CompiledProgram& compiled, const std::string& path) {
  const absl::StatusOr<std::string> bytes = FormatPlan(compiled);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(file.Append(*bytes));
  return file.Commit();
}

absl::StatusOr<CompiledProgram> LoadPlan(const std::string& path, const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<CompiledProgram> compiled = ParsePlan(bytes, ops);
  if (!compiled.ok()) return Annotate(compiled.status(), path);
  INTERP_RETURN_IF_ERROR(Annotate(CheckProved(compiled->plans), path));
  return compiled;
}

}  // namespace interp
