#include "tests/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "core/io/file.h"
#include "core/io/npy.h"
#include "nlohmann/json.hpp"

namespace interp::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // keeps the order of feeds and fetches

absl::StatusOr<std::vector<NamedTensor>> ReadTensors(const fs::path& folder, const Json& files,
                                                     const Json& lods,
                                                     absl::string_view lod_prefix) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, file] : files.items()) {
    INTERP_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy((folder / file.get<std::string>()).string()));
    const std::string lod_key = absl::StrCat(lod_prefix, name);
    if (lods.contains(lod_key)) tensor.lod = lods[lod_key].get<Lod>();
    tensors.emplace_back(name, std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<GoldenCase> ParseCase(const fs::path& folder, const Json& doc) {
  GoldenCase result;
  result.ops = doc.at("ops").get<std::vector<std::string>>();
  result.rtol = doc.at("rtol");
  result.atol = doc.at("atol");
  INTERP_ASSIGN_OR_RETURN(result.program, ReadFile((folder / "program.pb").string()));
  INTERP_ASSIGN_OR_RETURN(result.feeds, ReadTensors(folder, doc.at("feeds"), doc.at("lod"), ""));
  INTERP_ASSIGN_OR_RETURN(result.fetches,
                          ReadTensors(folder, doc.at("fetches"), doc.at("lod"), "out:"));
  return result;
}

absl::StatusOr<GoldenProgram::Step> ParseStep(const fs::path& folder, const Json& step,
                                              const Json& lods) {
  GoldenProgram::Step result;
  INTERP_ASSIGN_OR_RETURN(result.set, ReadTensors(folder, step.at("set_vars"), lods, ""));
  INTERP_ASSIGN_OR_RETURN(result.feeds,
                          ReadTensors(folder, step.at("feeds"), step.value("lod", lods), ""));
  INTERP_ASSIGN_OR_RETURN(result.fetches, ReadTensors(folder, step.at("fetches"), lods, "out:"));
  return result;
}

absl::StatusOr<GoldenProgram> ParseGoldenProgram(const fs::path& folder, const Json& doc) {
  GoldenProgram result;
  result.rtol = doc.at("rtol");
  result.atol = doc.at("atol");
  result.feed_order = doc.at("feed_order").get<std::vector<std::string>>();
  result.fetch_order = doc.at("fetch_order").get<std::vector<std::string>>();
  INTERP_ASSIGN_OR_RETURN(result.program, ReadFile((folder / "main.pb").string()));
  Json initial = Json::object();
  Json final = Json::object();
  for (const auto& [name, files] : doc.at("params").items()) {
    initial[name] = files.at("init");
    final[name] = files.at("final");
  }
  if (doc.contains("optimizer")) {
    result.loss = doc.at("loss");
    result.optimizer = doc.at("optimizer");
    INTERP_ASSIGN_OR_RETURN(result.forward, ReadFile((folder / "forward.pb").string()));
  }
  const Json lods = doc.value("lod", Json::object());
  INTERP_ASSIGN_OR_RETURN(result.initial, ReadTensors(folder, initial, lods, ""));
  INTERP_ASSIGN_OR_RETURN(result.final, ReadTensors(folder, final, lods, ""));
  for (const Json& step : doc.at("steps")) {
    INTERP_ASSIGN_OR_RETURN(result.steps.emplace_back(), ParseStep(folder, step, lods));
  }
  return result;
}

// What `parse` makes of the case.json of a folder.
template <typename Parse>
auto ReadJson(const std::string& folder, Parse parse) -> decltype(parse(folder, Json())) {
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder + "/case.json"));
  try {
    return parse(folder, Json::parse(text));
  } catch (const Json::exception& e) {
    return InvalidArgument(folder, "/case.json: ", e.what());
  }
}

template <typename T>
std::string FloatDifference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  double worst = -1;
  int64_t worst_at = -1;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double g = static_cast<double>(got.data<T>()[i]);
    const double w = static_cast<double>(want.data<T>()[i]);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double excess = std::abs(g - w) - (atol + rtol * std::abs(w));
    const bool close = std::isfinite(g) && std::isfinite(w) && excess <= 0;
    if (close) continue;
    const double badness = std::isfinite(excess) ? excess : HUGE_VAL;
    if (badness > worst) worst = badness, worst_at = i;
  }
  if (worst_at < 0) return "";
  return absl::StrCat("element ", worst_at, " of ", ToString(want.shape), " is ",
                      static_cast<double>(got.data<T>()[worst_at]), ", expected ",
                      static_cast<double>(want.data<T>()[worst_at]));
}

std::string BytesDifference(const Tensor& got, const Tensor& want) {
  const size_t size = SizeOf(want.dtype);
  const char* g = static_cast<const char*>(got.raw_data());
  const char* w = static_cast<const char*>(want.raw_data());
  for (int64_t i = 0; i < want.numel(); ++i) {
    if (std::memcmp(g + i * size, w + i * size, size) != 0) {
      return absl::StrCat("element ", i, " of ", DescribeType(want), " differs");
    }
  }
  return "";
}

// The parts of complex numbers, one after the other.
Tensor PartsOf(const Tensor& tensor) {
  Tensor parts;
  parts.shape = {2 * tensor.numel()};
  parts.dtype = tensor.dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  parts.ShareMemory(tensor);
  return parts;
}

std::string LodText(const Lod& lod) { return Json(lod).dump(); }

}  // namespace

bool GoldenSetIsForeign() {
  const char* folder = std::getenv("INTERP_GOLDENS");
  return folder != nullptr && folder[0] != '\0';
}

std::vector<std::string> GoldenSets() {
  if (GoldenSetIsForeign()) return {std::getenv("INTERP_GOLDENS")};
  std::vector<std::string> sets;
  for (const absl::string_view set : absl::StrSplit(INTERP_GOLDEN_SETS, ',')) {
    sets.push_back(absl::StrCat(INTERP_BINARY_DIR "/goldens/", set));
  }
  return sets;
}

std::vector<std::string> GoldenCaseFolders(const std::string& set) {
  std::vector<std::string> folders;
  if (!fs::is_directory(set)) return folders;
  for (const fs::directory_entry& op : fs::directory_iterator(set)) {
    if (!op.is_directory() || op.path().filename() == "programs") continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(op)) {
      if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

absl::StatusOr<GoldenCase> ReadGoldenCase(const std::string& folder) {
  return ReadJson(folder, ParseCase);
}

std::vector<std::string> GoldenProgramFolders(const std::string& set) {
  std::vector<std::string> folders;
  if (!fs::exists(fs::path(set) / "programs")) return folders;
  for (const auto& entry : fs::directory_iterator(fs::path(set) / "programs")) {
    if (fs::exists(entry.path() / "main.pb")) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

absl::StatusOr<GoldenProgram> ReadGoldenProgram(const std::string& folder) {
  return ReadJson(folder, ParseGoldenProgram);
}

std::string Difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype != want.dtype || !(got.shape == want.shape)) {
    return absl::StrCat("is ", DescribeType(got), ", expected ", DescribeType(want));
  }
  if (got.lod != want.lod) {
    return absl::StrCat("has LoD ", LodText(got.lod), ", expected ", LodText(want.lod));
  }
  if (got.numel() > 0 && !got.has_memory()) return "has no memory";
  switch (want.dtype) {
    case DType::kFloat16:
      return FloatDifference<float16>(got, want, rtol, atol);
    case DType::kFloat32:
      return FloatDifference<float>(got, want, rtol, atol);
    case DType::kFloat64:
      return FloatDifference<double>(got, want, rtol, atol);
    case DType::kComplex64:
      return FloatDifference<float>(PartsOf(got), PartsOf(want), rtol, atol);
    case DType::kComplex128:
      return FloatDifference<double>(PartsOf(got), PartsOf(want), rtol, atol);
    default:
      return BytesDifference(got, want);
  }
}

}  // namespace interp::testing
