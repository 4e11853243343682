// What a program is and needs, found without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interpreter/inspect/memory_estimate.h"
#include "interpreter/load_model.h"

namespace interp {

struct VarInfo {
  std::string name;
  const Var* var = nullptr;  // the declaration; null when there is none
};

struct ProgramInfo {
  std::string path;
  std::string version;
  size_t num_blocks = 0;
  size_t num_vars = 0;
  int64_t num_ops = 0;
  std::vector<VarInfo> inputs;
  std::vector<VarInfo> outputs;
  ParameterTotals declared;
  std::optional<ParameterTotals> loaded;
  std::vector<std::pair<std::string, int64_t>> ops;  // most frequent first
  std::vector<std::string> unsupported;
  std::optional<MemoryEstimate> memory;  // nullopt: no plan can be made
  std::string problem;                   // why not
};

// The result points into `model`. `with_params`: tell what was loaded.
ProgramInfo CollectInfo(const Model& model, bool with_params);

// "about 1.50 KiB at once, 3.00 KiB if nothing were freed", or why that is not known.
std::string MemoryText(const ProgramInfo& info);

}  // namespace interp
