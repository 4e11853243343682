// What `interp run` says about a fetched tensor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_writer.h"
#include "core/tensor.h"

namespace interp {

struct Summary {
  std::string name;
  bool has_values = false;  // false: nothing was computed, or a dtype that cannot be read
  DType dtype = DType::kUndefined;
  Shape shape;
  Lod lod;
  // Over the finite elements; nullopt when there are none.
  std::optional<double> min = std::nullopt;
  std::optional<double> max = std::nullopt;
  std::optional<double> mean = std::nullopt;
  std::string min_text = "-";  // as ValueText has it; of magnitudes where the dtype is complex
  std::string max_text = "-";
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  std::vector<std::string> values = {};  // all of them, of tensors with few
};

Summary Summarize(const NamedTensor& fetch);

// A table with one row for each, their values and LoD below.
std::string FormatSummaries(const std::vector<Summary>& summaries);

void WriteJson(const Summary& summary, JsonWriter& json);

}  // namespace interp
