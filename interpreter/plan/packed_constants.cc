#include "interpreter/plan/packed_constants.h"

#include <link.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <array>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "core/machine/build_info.h"
#include "core/machine/processor.h"
#include "core/packed_arrays.h"

namespace interp {
namespace {

// The linker's hash of the file that holds this code.
struct BuildId {
  uintptr_t code = 0;
  std::string id = {};
};

bool HoldsCode(const dl_phdr_info& info, uintptr_t code) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && code >= begin && code - begin < part.p_memsz) return true;
  }
  return false;
}

// Appends NT_GNU_BUILD_ID of a segment of notes.
void FindIn(const char* notes, size_t size, std::string& id) {
  const auto rounded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (size >= sizeof(note)) {
    std::memcpy(&note, notes, sizeof(note));
    const size_t name = rounded(note.n_namesz);
    const size_t whole = sizeof(note) + name + rounded(note.n_descsz);
    if (whole > size) return;
    if (note.n_type == NT_GNU_BUILD_ID && absl::string_view(notes + sizeof(note), 3) == "GNU") {
      id.append(notes + sizeof(note) + name, note.n_descsz);
    }
    notes += whole;
    size -= whole;
  }
}

int VisitObject(dl_phdr_info* info, size_t /*size*/, void* data) {
  auto& found = *static_cast<BuildId*>(data);
  if (!HoldsCode(*info, found.code)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE || part.p_align > 4) continue;
    FindIn(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr), part.p_memsz, found.id);
  }
  return 1;
}

std::string MakeFingerprint() {
  const BuildInfo& build = GetBuildInfo();
  BuildId found{.code = reinterpret_cast<uintptr_t>(&MakeFingerprint)};
  dl_iterate_phdr(VisitObject, &found);
  return absl::StrCat("interp ", build.version, " for ", build.level, " (", build.libraries,
                      "), build ", absl::BytesToHexString(found.id), ", on ", ProcessorLevel(),
                      ProcessorHasBf16Products() ? " with bf16" : "",
                      ProcessorHasBf16Tiles() ? " with bf16 tiles" : "",
                      ProcessorHasInt8Products() ? " with int8" : "");
}

absl::Status CheckKept(const Plan& plan, VarId id, const Tensor& tensor) {
  const PlanVar& var = plan.vars[id];
  if (var.kind != VarKind::kLodTensor || !var.place.on_host() || tensor.dtype != var.dtype ||
      tensor.layout != var.layout) {
    return InvalidArgument("'", var.name, "' is ", DescribeType(tensor), " of layout ",
                           Name(tensor.layout), " there, which is not the plan's");
  }
  return absl::OkStatus();
}

absl::Status CheckFolded(const Plan& plan, const PackedEntry& entry) {
  if (entry.vars.size() != entry.tensors.size()) {
    return InvalidArgument("there are ", entry.tensors.size(), " folded constants of ",
                           entry.vars.size(), " variables");
  }
  for (size_t i = 0; i < entry.vars.size(); ++i) {
    const VarId id = entry.vars[i];
    if (id < 0 || static_cast<size_t>(id) >= plan.vars.size() || !plan.vars[id].folded) {
      return InvalidArgument("variable ", id, " is not folded");
    }
    INTERP_RETURN_IF_ERROR(CheckKept(plan, id, entry.tensors[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const Plan& plan, const PackedEntry& entry) {
  if (entry.key >= plan.vars.size() || plan.vars[entry.key].copy_of < 0) {
    return InvalidArgument("variable ", entry.key, " is no copy of a constant");
  }
  if (!entry.vars.empty() || entry.tensors.size() != 1) {
    return InvalidArgument("a constant has ", entry.tensors.size(), " copies");
  }
  return CheckKept(plan, static_cast<VarId>(entry.key), entry.tensors[0]);
}

// Whether input `arg` is read in no run that has what its kernel packed under `key`: the weight of
// a product (kernels/product/product.h), a convolution's filter and what is folded into it
// (kernels/conv/conv.cc; with a depthwise one behind it kernels/conv/pointwise_depthwise.cc), or
// the weight of a recurrent op, whose key is its slot (kernels/recurrent/packed_weights.h).
bool IsPackedUnder(const Instruction& instruction, int arg, uint64_t key) {
  constexpr std::array<absl::string_view, 8> kFolded = {
      "Filter", "Bias", "BnScale", "BnBias", "BnMean", "BnVariance", "PreScale", "PreShift"};
  const std::vector<SlotDef>& slots = instruction.def->inputs;
  const auto slot = static_cast<size_t>(InputSlotOf(instruction, arg));
  if (slot >= slots.size()) return false;  // a hidden argument
  absl::string_view name = slots[slot].name;
  const auto has = [&](absl::string_view wanted) {
    return absl::c_any_of(slots, [&](const SlotDef& each) { return each.name == wanted; });
  };
  if (key == kPackedArraysKey) {
    for (const absl::string_view weight : {"W", "WeightX", "Filter"}) {
      if (has(weight)) return name == weight;
    }
    return name == "Y";
  }
  if (has("DepthwiseFilter")) {
    constexpr uint64_t kTapsKey = 2;  // of the depthwise filter
    const bool depthwise = absl::ConsumePrefix(&name, "Depthwise");
    if (depthwise != (key == (kPackedArraysKey | kTapsKey))) return false;
  }
  if (has("Filter")) return absl::c_linear_search(kFolded, name);
  return (key ^ kPackedArraysKey) == slot;
}

// The constants that are read as they are.
class ReadConstants {
 public:
  ReadConstants(absl::Span<const Plan> plans, const PackedConstants& packed) {
    for (const PackedEntry& entry : packed.entries) keys_[entry.instruction].push_back(entry.key);
    for (const Plan& plan : plans) {
      for (size_t i = 0; i < plan.instructions.size(); ++i) {
        const auto keys = keys_.find(plan.first_number + static_cast<int32_t>(i));
        Visit(plan, plan.instructions[i], keys == keys_.end() ? Keys() : keys->second);
      }
      if (HasEntry(plan, kFoldedKey)) continue;
      for (const Instruction& instruction : plan.folded) Visit(plan, instruction, {});
    }
  }
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  using Keys = std::vector<uint64_t>;

  bool HasEntry(const Plan& plan, uint64_t key) const {
    const auto keys = keys_.find(-1 - plan.block);
    return keys != keys_.end() && absl::c_binary_search(keys->second, key);
  }

  void Visit(const Plan& plan, const Instruction& instruction, const Keys& keys) {
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      const bool packed = absl::c_any_of(keys, [&](uint64_t key) {
        return IsPackedUnder(instruction, static_cast<int>(arg), key);
      });
      const VarId source = plan.vars[id].copy_of;
      if (packed || (source >= 0 && HasEntry(plan, static_cast<uint64_t>(id)))) continue;
      names_.insert(plan.vars[source >= 0 ? source : id].name);
    }
  }

  absl::flat_hash_map<int32_t, Keys> keys_;  // by PackedEntry::instruction, sorted
  absl::flat_hash_set<std::string> names_;
};

}  // namespace

absl::Status CheckReadParameters(absl::Span<const Plan> plans, const PackedConstants& packed) {
  const ReadConstants read(plans, packed);
  for (size_t i = 0; i < packed.parameters.size(); ++i) {
    const auto& [name, tensor] = packed.parameters[i];
    if (!read.contains(name) || ChecksumOf(tensor) == packed.parameter_checksums[i]) continue;
    return DataLoss("damaged: the checksum of parameter '", name, "' differs");
  }
  return absl::OkStatus();
}

const std::string& MachineFingerprint() {
  static const auto& fingerprint = *new std::string(MakeFingerprint());
  return fingerprint;
}

uint64_t ChecksumOf(const Tensor& tensor) {
  return XXH64(tensor.raw_data(), tensor.size_bytes(), /*seed=*/1);
}

absl::Status CheckPackedEntry(absl::Span<const Plan> plans, const PackedEntry& entry) {
  if (entry.instruction >= 0) {
    if (entry.instruction >= CountInstructions(plans) || (entry.key & kPackedArraysKey) == 0 ||
        !entry.vars.empty()) {
      return InvalidArgument("packed constants of instruction ", entry.instruction, ", key ",
                             entry.key, ", are none of the plan's");
    }
    return absl::OkStatus();
  }
  const int64_t block = int64_t{-1} - entry.instruction;
  if (block >= static_cast<int64_t>(plans.size())) {
    return InvalidArgument("constants of block ", block, " of ", plans.size());
  }
  const Plan& plan = plans[static_cast<size_t>(block)];
  return entry.key == kFoldedKey ? CheckFolded(plan, entry) : CheckCopy(plan, entry);
}

}  // namespace interp
