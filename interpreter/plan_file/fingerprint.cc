#include "interpreter/plan_file/fingerprint.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <string>

#include "core/program_load.h"

namespace interp {
namespace {

constexpr uint64_t kHashSeed = 1;

uint64_t Hash(absl::string_view bytes) { return XXH64(bytes.data(), bytes.size(), kHashSeed); }

void AddSlots(const std::vector<SlotDef>& slots, std::string& text) {
  for (const SlotDef& slot : slots) absl::StrAppend(&text, slot.name, ":", slot.flags, " ");
  text += "\n";
}

void AddPairs(const std::vector<SharePair>& pairs, std::string& text) {
  for (const SharePair& pair : pairs) absl::StrAppend(&text, pair.input, ">", pair.output, " ");
  text += "\n";
}

}  // namespace

absl::StatusOr<uint64_t> FingerprintOf(const Program& program) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, SaveProgram(program));
  return std::max<uint64_t>(Hash(bytes), 1);
}

uint64_t FingerprintOf(const OpDef& def) {
  std::string text = absl::StrCat(def.type, "\n");
  AddSlots(def.inputs, text);
  AddSlots(def.outputs, text);
  AddPairs(def.inplace, text);
  AddPairs(def.view, text);
  for (const KernelDef& kernel : def.kernels) {
    absl::StrAppend(&text, static_cast<int>(kernel.dtype), "@", static_cast<int>(kernel.place),
                    " ");
  }
  const bool flags[] = {def.view_turns,
                        def.parse != nullptr,
                        def.kernel_dtype != nullptr,
                        def.infer_dtype != nullptr,
                        def.infer != nullptr,
                        def.layout_rule != nullptr,
                        def.dynamic_outputs,
                        def.side_effect,
                        def.random,
                        def.host_only};
  absl::StrAppend(&text, "\n", static_cast<int>(def.layout), " ");
  for (const bool flag : flags) text += flag ? '1' : '0';
  return Hash(text);
}

}  // namespace interp
