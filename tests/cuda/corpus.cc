// cuda_corpus: programs from files, run once on the host and once on an emulated GPU.
//
//   cuda_corpus [--seconds=N] [--fetch=NAME,NAME...] MODEL|FOLDER...
//
// Each .pdmodel runs in a process of its own, which may take N seconds (300), on random feeds that
// are as small as it takes: unknown dims and those of images are tried from 16 up, batches of two
// sequences before one. Parameters that lie beside a program are read, others made up. Where not
// all that a program fetches can be had on the host, what can is compared. A line says for each how
// much floats differ by the greatest of their tensor, or what differs by more than 1e-4 of it, or
// why it did not run; the exit status is 1 where something differs, crashes, or launches no kernel.
// Programs that train or read data by themselves are left out.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "passes/feed_fetch.h"
#include "tests/cuda/both_places.h"
#include "tests/cuda_emulation/emulation.h"
#include "tools/feed_values.h"
#include "tools/feeds.h"
#include "tools/model.h"
#include "tools/names.h"

namespace interp::cuda_test {
namespace {

enum Outcome : int { kAgrees, kDiffers, kDoesNotRun, kLeftOut };

// What a layer of that many inputs keeps in size; of vectors, 0.5 to 1.5, as variances want.
Tensor MakeParameter(const ParamDecl& param, std::minstd_rand& random) {
  std::vector<int64_t> dims = param.dims;
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  absl::StatusOr<Tensor> tensor = MakeFeed(param.dtype, dims);
  if (!tensor.ok() || param.dtype != DType::kFloat32) return tensor.value_or(Tensor());
  const int64_t inputs = dims.size() == 2 ? dims[0] : tensor->numel() / dims[0];
  const float limit = std::sqrt(3.0f / static_cast<float>(std::max<int64_t>(inputs, 1)));
  std::uniform_real_distribution<float> value(dims.size() < 2 ? 0.5f : -limit,
                                              dims.size() < 2 ? 1.5f : limit);
  for (int64_t i = 0; i < tensor->numel(); ++i) tensor->mutable_data<float>()[i] = value(random);
  return *std::move(tensor);
}

// The values in the scope, and made-up ones for the rest.
std::vector<NamedTensor> ParametersOf(const Model& model) {
  std::minstd_rand random(7);
  std::vector<NamedTensor> parameters;
  for (const ParamDecl& param : ParamsOf(model.program)) {
    if (param.dtype == DType::kUndefined) continue;
    const Variable* const known = model.scope->Find(param.name);
    const bool has_value = known != nullptr && known->tensor.dtype != DType::kUndefined;
    parameters.emplace_back(param.name, has_value ? known->tensor : MakeParameter(param, random));
  }
  return parameters;
}

// How small feeds are: height and width of images, with 0 as declared, and the sequences of feeds
// that have a LoD.
struct FeedSizes {
  int64_t image;
  int64_t sequences;
};

// What the program takes from outside, that which its feed ops forget included.
absl::StatusOr<std::set<VarId>> FedVars(Program program) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> declared, DataVars(program));
  std::set<VarId> fed(declared.begin(), declared.end());
  std::erase_if(program.blocks[0].ops, IsFeed);
  INTERP_ASSIGN_OR_RETURN(const std::vector<VarId> open, DataVars(program));
  fed.insert(open.begin(), open.end());
  return fed;
}

// Whether an op casts it, of floats, to integers, which may be labels.
bool IsCastToIntegers(const Program& program, VarId id) {
  const auto casts = [id](const Op& op) {
    const Slot* const x = op.type == "cast" ? op.FindInput("X") : nullptr;
    const Attr* const dtype = op.FindAttr("out_dtype");
    const int32_t* const value = dtype == nullptr ? nullptr : std::get_if<int32_t>(&dtype->value);
    constexpr int32_t kInt32 = 2, kInt64 = 3;  // as in framework.proto
    return x != nullptr && x->args == ArgIds{id} && value != nullptr &&
           (*value == kInt32 || *value == kInt64);
  };
  return std::any_of(program.blocks[0].ops.begin(), program.blocks[0].ops.end(), casts);
}

// Two and three rows, or all five; the levels above have a sequence for each of the next.
Lod LodOf(int lod_level, int64_t sequences) {
  Lod lod(static_cast<size_t>(lod_level),
          sequences == 2 ? Lod::value_type{0, 1, 2} : Lod::value_type{0, 1});
  lod.back() = sequences == 2 ? Lod::value_type{0, 2, 5} : Lod::value_type{0, 5};
  return lod;
}

absl::StatusOr<Tensor> RandomFeed(const Program& program, Var var, FeedSizes sizes) {
  const bool has_lod = var.lod_level > 0;
  for (size_t i = 0; i < var.dims.size(); ++i) {
    int64_t& dim = var.dims[i];
    const bool of_image = var.dims.size() >= 4 && i >= 2;
    if (dim < 0) dim = i > 0 ? std::max<int64_t>(sizes.image, 16) : has_lod ? 5 : sizes.sequences;
    if (of_image && sizes.image > 0) dim = std::min(dim, sizes.image);
  }
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, ReadFeedValue({program.NameOf(var.id), &var}, "random",
                                                       /*seed=*/0, /*max_bytes=*/0));
  if (tensor.dtype == DType::kFloat32 && IsCastToIntegers(program, var.id)) {
    float* const data = tensor.mutable_data<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = data[i] > 0 ? 1.0f : 0.0f;
  }
  if (has_lod && !var.dims.empty() && var.dims[0] == 5) {
    tensor.lod = LodOf(var.lod_level, sizes.sequences);
  }
  return tensor;
}

absl::StatusOr<std::vector<NamedTensor>> FeedsOf(const Program& program, FeedSizes sizes) {
  INTERP_ASSIGN_OR_RETURN(const std::set<VarId> ids, FedVars(program));
  std::vector<NamedTensor> feeds;
  for (const VarId id : ids) {
    const Var* const declared = FindVar(program, id);
    if (declared == nullptr) return InvalidArgument("'", program.NameOf(id), "' is not declared");
    INTERP_ASSIGN_OR_RETURN(Tensor tensor, RandomFeed(program, *declared, sizes));
    feeds.emplace_back(program.NameOf(id), std::move(tensor));
  }
  AddDefaultLods(program, feeds);
  return feeds;
}

// Empty for programs of inference.
std::string WhyLeftOut(const Program& program) {
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (absl::EndsWith(op.type, "_grad")) return "it trains";
      if (op.type == "read" || op.type == "create_py_reader") return "it reads data by itself";
    }
  }
  return "";
}

Outcome Tell(Outcome outcome, const std::string& path, const std::string& text) {
  constexpr const char* kNames[] = {"agrees", "DIFFERS", "does not run", "left out"};
  std::printf("%-12s %s: %s\n", kNames[outcome],
              std::filesystem::path(path).stem().string().c_str(), text.c_str());
  std::fflush(stdout);
  return outcome;
}

// The greatest finite |value| of a float32; 0 for other dtypes.
double GreatestOf(const Tensor& tensor) {
  double greatest = 0;
  if (tensor.dtype != DType::kFloat32) return greatest;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double size = std::abs(tensor.data<float>()[i]);
    if (std::isfinite(size)) greatest = std::max(greatest, size);
  }
  return greatest;
}

// The greatest |got - want| of float32 by the greatest value: boxes have elements near 0 that are
// differences of great ones, and probabilities may all be tiny.
double ErrorOf(const Tensor& got, const Tensor& want) {
  const double greatest = GreatestOf(want);
  double error = 0;
  for (int64_t i = 0; greatest > 0 && i < want.numel(); ++i) {
    const double difference = std::abs(got.data<float>()[i] - double{want.data<float>()[i]});
    if (std::isfinite(difference)) error = std::max(error, difference / greatest);
  }
  return error;
}

// Compares with `want`, which the host gave on feeds of these sizes.
Outcome RunOnEmulation(const ProgramRun& run, const std::string& path, FeedSizes sizes,
                       const std::vector<NamedTensor>& want) {
  constexpr double kTolerance = 1e-4;
  const auto machine =
      cuda_emulation::Machine::Start({.seed = 1, .capacity_bytes = size_t{1} << 30});
  if (!machine.ok()) return Tell(kDoesNotRun, path, machine.status().ToString());
  const auto got = RunOnPlace(run, {PlaceKind::kCuda, 0});
  if (!got.ok()) return Tell(kDiffers, path, got.status().ToString());
  std::vector<std::string> wrong;
  double error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const Tensor& result = (*got)[i].second;
    const Tensor& wanted = want[i].second;
    const std::string difference =
        testing::Difference(result, wanted, /*rtol=*/0, kTolerance * GreatestOf(wanted));
    if (difference.empty()) {
      error = std::max(error, ErrorOf(result, wanted));
    } else {
      wrong.push_back(absl::StrCat(want[i].first, " ", difference));
    }
  }
  for (const cuda_emulation::Finding& finding : (*machine)->TakeFindings()) {
    wrong.push_back(finding.text);
  }
  const int64_t launches = (*machine)->calls("cudaLaunchKernel");
  if (want.empty()) wrong.push_back("nothing is compared");
  if (launches == 0) wrong.push_back("no kernel is launched");
  if (!wrong.empty()) return Tell(kDiffers, path, absl::StrJoin(wrong, "\n    "));
  return Tell(
      kAgrees, path,
      absl::StrCat("error ", absl::SixDigits(error), ", ", launches, " launches, ", want.size(),
                   " compared, sizes ", sizes.image, " and ", sizes.sequences));
}

// Makes the feeds of `run` as small as the host takes them, and gives what it fetches then.
absl::StatusOr<std::vector<NamedTensor>> FindFeeds(ProgramRun& run, FeedSizes& sizes) {
  absl::Status status;
  for (const int64_t image : {16, 32, 64, 128, 0}) {
    for (const int64_t sequences : {2, 1}) {
      sizes = {image, sequences};
      INTERP_ASSIGN_OR_RETURN(run.feeds, FeedsOf(run.program, sizes));
      const auto has_lod = [](const NamedTensor& feed) { return !feed.second.lod.empty(); };
      if (sequences > 1 && std::none_of(run.feeds.begin(), run.feeds.end(), has_lod)) continue;
      auto fetched = RunOnPlace(run, {PlaceKind::kCpu, 0});
      if (fetched.ok()) return fetched;
      status = fetched.status();
    }
  }
  return status;
}

Outcome Compare(const std::string& path, const std::vector<std::string>& wanted) {
  ModelFlags flags{.model = path, .params = "", .compiled_from = ""};
  absl::StatusOr<Model> model = LoadModel(flags);
  if (!model.ok()) return Tell(kDoesNotRun, path, model.status().ToString());
  const std::string why = WhyLeftOut(model->program);
  if (!why.empty()) return Tell(kLeftOut, path, why);
  flags.finds_params = true;
  model = LoadModel(flags);
  if (!model.ok()) return Tell(kDoesNotRun, path, model.status().ToString());
  const auto fetches = FetchNames(model->program, wanted);
  if (!fetches.ok()) return Tell(kDoesNotRun, path, fetches.status().ToString());
  ProgramRun run{.program = model->program,
                 .parameters = ParametersOf(*model),
                 .feeds = {},
                 .fetches = *fetches,
                 .trains = fetches->empty()};
  FeedSizes sizes = {};
  auto want = FindFeeds(run, sizes);
  const absl::Status status = want.status();
  for (size_t i = 0; !want.ok() && fetches->size() > 1 && i < fetches->size(); ++i) {
    run.fetches = {(*fetches)[i]};
    want = FindFeeds(run, sizes);
  }
  if (!want.ok()) return Tell(kDoesNotRun, path, absl::StrCat("on the host: ", status.ToString()));
  const Outcome outcome = RunOnEmulation(run, path, sizes, *want);
  if (!status.ok()) Tell(kDoesNotRun, path, absl::StrCat("the rest: ", status.ToString()));
  return outcome;
}

// In a process of its own, which may take that many seconds.
Outcome CompareApart(const std::string& path, const std::vector<std::string>& wanted, int seconds) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(seconds));
    _exit(Compare(path, wanted));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return Tell(kDoesNotRun, path, "no process for it");
  }
  if (WIFEXITED(status)) return static_cast<Outcome>(WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) {
    return Tell(kDoesNotRun, path, absl::StrCat("takes more than ", seconds, " s"));
  }
  return Tell(kDiffers, path, absl::StrCat("is ended by signal ", WTERMSIG(status)));
}

std::vector<std::string> ModelsAt(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> models;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".pdmodel") models.push_back(entry.path().string());
  }
  std::sort(models.begin(), models.end());
  return models;
}

int Main(const std::vector<std::string>& arguments) {
  int seconds = 300;
  std::vector<std::string> wanted;
  int counts[4] = {};
  for (absl::string_view argument : arguments) {
    if (absl::ConsumePrefix(&argument, "--seconds=")) {
      if (absl::SimpleAtoi(argument, &seconds) && seconds > 0) continue;
      std::fprintf(stderr, "--seconds is not a number above 0\n");
      return 2;
    }
    if (absl::ConsumePrefix(&argument, "--fetch=")) {
      wanted = {std::string(argument)};
      continue;
    }
    for (const std::string& model : ModelsAt(std::string(argument))) {
      ++counts[CompareApart(model, wanted, seconds)];
    }
  }
  std::printf("%d agree, %d differ, %d do not run, %d left out\n", counts[kAgrees],
              counts[kDiffers], counts[kDoesNotRun], counts[kLeftOut]);
  return counts[kDiffers] > 0 ? 1 : 0;
}

}  // namespace
}  // namespace interp::cuda_test

int main(int argc, char** argv) {
  return interp::cuda_test::Main(std::vector<std::string>(argv + 1, argv + argc));
}
