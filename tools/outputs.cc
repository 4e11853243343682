#include "tools/outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/errno_status.h"
#include "core/io/file.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "tools/names.h"
#include "tools/tensor_values.h"

namespace interp {
namespace {

constexpr int kWorstDigits = 9;  // tell any two floats apart

absl::Status WriteFolder(const std::string& path, const std::vector<NamedTensor>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return NotFound("cannot create folder '", path, "': ", error.message());
  for (const auto& [name, tensor] : outputs) {
    INTERP_RETURN_IF_ERROR(WriteNpy(absl::StrCat(path, "/", FileStem(name), ".npy"), tensor));
  }
  return absl::OkStatus();
}

// Names of variables may differ where those of files do not.
absl::Status CheckStems(const std::string& path, const std::vector<std::string>& names) {
  std::set<std::string> stems;
  for (const std::string& name : names) {
    const std::string stem = FileStem(name);
    if (!stems.insert(stem).second) {
      return InvalidArgument("two results would be written to '", path, "/", stem,
                             ".npy'; use an .npz file");
    }
  }
  return absl::OkStatus();
}

template <typename T>
double Difference(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    // Doubles would make neighbours above 2^53 equal, and the difference may leave the type.
    const auto [least, most] = std::minmax({static_cast<int64_t>(a), static_cast<int64_t>(b)});
    return static_cast<double>(static_cast<uint64_t>(most) - static_cast<uint64_t>(least));
  } else {
    return std::abs(ToDouble(a) - ToDouble(b));
  }
}
template <typename T>
double Difference(const std::complex<T>& a, const std::complex<T>& b) {
  return std::abs(std::complex<double>(a) - std::complex<double>(b));
}

// How far apart two elements are, in units of their tolerance: above 1 they differ.
template <typename T>
double Excess(const T& got, const T& expected, const Tolerance& tolerance) {
  if (got == expected) return 0;
  const double size = std::abs(ToDouble(expected));
  if (std::isnan(ToDouble(got)) && std::isnan(size)) return 0;
  const double difference = Difference(got, expected);
  const double allowed = tolerance.atol + tolerance.rtol * size;
  const bool comparable = std::isfinite(difference) && std::isfinite(size) && allowed > 0;
  return comparable ? difference / allowed : std::numeric_limits<double>::infinity();
}

template <typename T>
void CompareElements(const T* got, const T* expected, int64_t count, const Tensor& tensor,
                     const Tolerance& tolerance, Comparison& result) {
  double worst = -1;
  double max_difference = 0;
  double max_expected = 0;
  bool any_finite = count == 0;
  int64_t worst_at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = ToDouble(got[i]);
    const double b = ToDouble(expected[i]);
    const double excess = Excess(got[i], expected[i], tolerance);
    if (excess > 1) ++result.num_different;
    if (std::isnan(a)) ++result.num_nan;
    if (std::isnan(b)) ++result.num_expected_nan;
    if (std::isfinite(a) && std::isfinite(b)) {
      any_finite = true;
      max_difference = std::max(max_difference, Difference(got[i], expected[i]));
      max_expected = std::max(max_expected, std::abs(b));
    }
    if (excess <= worst) continue;
    worst = excess;
    result.worst_index = IndexText(tensor.shape, i);
    result.worst_got = a;
    result.worst_expected = b;
    worst_at = i;
  }
  if (count > 0 && !std::is_floating_point_v<T>) {
    result.worst_got_text = ValueText(got[worst_at], kWorstDigits);
    result.worst_expected_text = ValueText(expected[worst_at], kWorstDigits);
  }
  if (!any_finite) {
    result.relative_error = std::nullopt;
  } else if (max_difference > 0) {
    result.relative_error =
        max_difference / std::max(max_expected, std::numeric_limits<double>::min());
  }
}

// The one name of the file at `path`, which need not be there yet. Empty for what several may be
// written to: pipes, devices and folders.
std::filesystem::path OneNameOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error) || fs::is_other(path, error)) return {};
  // Of a relative path whose beginning does not exist nothing would become absolute.
  const fs::path absolute = fs::absolute(path, error);
  return error ? fs::path() : fs::weakly_canonical(absolute, error);
}

}  // namespace

absl::Status WriteOutputs(const std::string& path, const std::vector<NamedTensor>& outputs) {
  for (const auto& [name, tensor] : outputs) {
    if (!tensor.has_memory()) return NotFound("'", name, "' has no value to write");
  }
  if (absl::EndsWith(path, ".npz")) return WriteNpz(path, outputs);
  std::vector<std::string> names;
  for (const NamedTensor& output : outputs) names.push_back(output.first);
  INTERP_RETURN_IF_ERROR(CheckStems(path, names));
  return WriteFolder(path, outputs);
}

std::vector<std::string> FilesOfOutputs(const std::string& path,
                                        const std::vector<std::string>& names) {
  if (path.empty() || absl::EndsWith(path, ".npz")) return {path};
  std::set<std::string> files;
  for (const std::string& name : names)
    files.insert(absl::StrCat(path, "/", FileStem(name), ".npy"));
  return {files.begin(), files.end()};
}

absl::Status CheckWritable(const std::string& path) {
  // Whoever reads a pipe would take this for its end.
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored)) return absl::OkStatus();
  return FileWriter::Create(path).status();
}

absl::Status CheckDistinct(const std::vector<NamedFile>& outputs,
                           const std::vector<NamedFile>& inputs) {
  std::map<std::filesystem::path, const char*> flags;
  for (const NamedFile& input : inputs) flags.try_emplace(OneNameOf(input.path), input.flag);
  for (const NamedFile& output : outputs) {
    const std::filesystem::path name = OneNameOf(output.path);
    if (name.empty()) continue;
    const auto [other, added] = flags.try_emplace(name, output.flag);
    if (!added) {
      return InvalidArgument(other->second, " and ", output.flag, " are both '", output.path,
                             "', expected two files");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputsWritable(const std::string& path, const std::vector<std::string>& names) {
  namespace fs = std::filesystem;
  if (absl::EndsWith(path, ".npz")) return CheckWritable(path);
  INTERP_RETURN_IF_ERROR(CheckStems(path, names));
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored);
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ignored)) {
    return InvalidArgument("'", folder.string(),
                           "' is no folder; results go to a folder or to a file that ends in .npz");
  }
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot write to '", folder.string(), "'"));
}

Comparison Compare(const NamedTensor& got, const Tensor& expected, const Tolerance& tolerance) {
  const Tensor& tensor = got.second;
  Comparison result{.name = got.first, .num_elements = expected.numel()};
  if (!tensor.has_memory()) {
    result.problem = "no value";
  } else if (tensor.dtype != expected.dtype || !(tensor.shape == expected.shape)) {
    result.problem =
        absl::StrCat("got ", DescribeType(tensor), ", expected ", DescribeType(expected));
  }
  if (!result.problem.empty()) return result;
  const bool comparable = VisitElements(tensor, [&]<typename T>(const T* data, int64_t count) {
    CompareElements(data, expected.data<T>(), count, tensor, tolerance, result);
  });
  if (!comparable) {
    result.problem = absl::StrCat("elements of ", Name(tensor.dtype), " cannot be compared");
  }
  return result;
}

std::vector<Comparison> CompareAll(const std::vector<NamedTensor>& got,
                                   const std::vector<NamedTensor>& expected,
                                   const Tolerance& tolerance) {
  std::vector<Comparison> comparisons;
  for (const NamedTensor& want : expected) {
    const auto found = std::find_if(got.begin(), got.end(),
                                    [&](const NamedTensor& g) { return g.first == want.first; });
    comparisons.push_back(Compare(*found, want.second, tolerance));
  }
  return comparisons;
}

void WriteComparison(const Comparison& comparison, JsonWriter& json) {
  json.Field("ok", comparison.ok());
  if (!comparison.problem.empty()) json.Field("problem", comparison.problem);
  json.Field("elements", comparison.num_elements);
  json.Field("different", comparison.num_different);
  json.Field("nan", comparison.num_nan);
  json.Field("expected_nan", comparison.num_expected_nan);
  json.Field("relative_error", comparison.relative_error);
  json.Field("worst_index", comparison.worst_index);
  json.Field("worst_got", comparison.worst_got);
  json.Field("worst_expected", comparison.worst_expected);
}

std::string WorstText(double value, const std::string& text, int digits) {
  return text.empty() ? RealText(value, digits) : text;
}

std::string FormatComparison(const Comparison& c) {
  if (!c.problem.empty()) return absl::StrCat(c.name, ": differs, ", c.problem);
  std::string text = absl::StrCat(c.name, ": ", c.ok() ? "ok" : "differs");
  if (!c.ok()) absl::StrAppend(&text, ", ", c.num_different, " of ", c.num_elements, " elements");
  if (c.num_nan > 0 || c.num_expected_nan > 0) {
    absl::StrAppend(&text, ", ", c.num_nan, " NaN, expected ", c.num_expected_nan);
  }
  if (c.relative_error.has_value()) {
    absl::StrAppendFormat(&text, ", relative error %.3g", *c.relative_error);
    if (c.num_nan > 0 || c.num_expected_nan > 0) absl::StrAppend(&text, " of the others");
  }
  if (c.num_elements > 0 && (c.relative_error.value_or(0) > 0 || !c.ok())) {
    absl::StrAppend(&text, ", worst ", WorstText(c.worst_got, c.worst_got_text, kWorstDigits),
                    " for ", WorstText(c.worst_expected, c.worst_expected_text, kWorstDigits),
                    " at ", c.worst_index);
  }
  return text;
}

}  // namespace interp
