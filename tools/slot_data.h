// MultiSlot text as the data of `interp train`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/sample_source.h"

namespace interp {

// Whether the argument of --data names MultiSlot text.
bool IsSlotFile(const std::string& argument);

// The variables that a program declares with a LoD: feeds of them hold sparse slots. Sorted.
std::vector<std::string> SparseVars(const Program& program);

// The samples of all `paths`, one file after another. `names`: the slots of a line in their order,
// those that are no feeds included; empty: the feeds. Errors start with the path or with --slots:
// those of ParseMultiSlot and SlotFor, NotFound for a feed that no slot is for, ResourceExhausted
// for files of more than `max_bytes`.
absl::StatusOr<std::shared_ptr<SampleSource>> OpenSlots(const std::vector<std::string>& paths,
                                                        const std::vector<FeedSpec>& feeds,
                                                        const std::vector<std::string>& sparse,
                                                        std::vector<std::string> names,
                                                        size_t max_bytes);

}  // namespace interp
