// Files of `interp run`: results written, expected results compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_writer.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

// Writes the tensors as one .npz when `path` ends so, else as NAME.npy files in the folder `path`,
// which is made when missing; '/' in a name becomes '_'. Each file is written beside its place and
// renamed, so nobody sees a part of one.
absl::Status WriteOutputs(const std::string& path, const std::vector<NamedTensor>& outputs);

// The files that WriteOutputs writes with results of those names, each once.
std::vector<std::string> FilesOfOutputs(const std::string& path,
                                        const std::vector<std::string>& names);

// Why `path` cannot be written, found out without writing anything, so that it is said before long
// runs: of one file, and of what WriteOutputs takes with results of those names. What lies there
// stays as it is.
absl::Status CheckWritable(const std::string& path);
absl::Status CheckOutputsWritable(const std::string& path, const std::vector<std::string>& names);

// A flag that names a file, and the file; "" where the flag was not given.
struct NamedFile {
  const char* flag;
  std::string path;
};
// InvalidArgument where two of `outputs` are one file, or one of them is one of `inputs`.
absl::Status CheckDistinct(const std::vector<NamedFile>& outputs,
                           const std::vector<NamedFile>& inputs = {});

struct Tolerance {
  double rtol = 1e-4;
  double atol = 1e-5;
};

// How one variable compares. An element differs when |got - expected| > atol + rtol * |expected|;
// NaN equals NaN, and an infinity only itself.
struct Comparison {
  std::string name;
  std::string problem = {};  // dtype or shape differ, or nothing was computed: no elements compared
  int64_t num_elements = 0;
  int64_t num_different = 0;
  // The element that exceeds its tolerance most, or comes nearest to it.
  std::string worst_index = {};
  // As doubles: the magnitude of a complex one, and of a large integer the nearest.
  double worst_got = 0;
  double worst_expected = 0;
  // As ValueText has them; empty for float32 and float64.
  std::string worst_got_text = {};
  std::string worst_expected_text = {};
  // max |got - expected| / max |expected|, over the elements that are finite in both; nullopt when
  // there are none, though there are elements.
  std::optional<double> relative_error = 0;
  // How many elements are NaN: of what was computed and of what was expected.
  int64_t num_nan = 0;
  int64_t num_expected_nan = 0;

  bool ok() const { return problem.empty() && num_different == 0; }
};

Comparison Compare(const NamedTensor& got, const Tensor& expected, const Tolerance& tolerance);

// Each of `expected`. REQUIRES: `got` has all of their names.
std::vector<Comparison> CompareAll(const std::vector<NamedTensor>& got,
                                   const std::vector<NamedTensor>& expected,
                                   const Tolerance& tolerance);

// The fields of an object that say how it compares; its name is the caller's to write.
void WriteComparison(const Comparison& comparison, JsonWriter& json);

// One of the two worst elements as text, with `digits` digits where it is a real number.
std::string WorstText(double value, const std::string& text, int digits);

// One line: "y: ok, ..." or "y: differs, ...".
std::string FormatComparison(const Comparison& comparison);

}  // namespace interp
