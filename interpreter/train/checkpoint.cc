#include "interpreter/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/device/device_heap.h"
#include "core/io/file.h"
#include "core/io/params.h"

namespace interp {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "step-";
constexpr absl::string_view kUnfinished = ".unfinished-";
constexpr absl::string_view kHeader = "interp checkpoint 1";
constexpr int64_t kMostSteps = int64_t{1} << 62;  // leaves room to count on
constexpr size_t kMaxStateBytes = size_t{64} << 20;

absl::Status SystemError(absl::string_view what, const std::string& path, std::error_code error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot ", what, " '", path, "'"));
}

// Names of a folder are on the disk only once the folder is.
absl::Status Synchronize(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (done) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot synchronize '", folder, "'"));
}

// The checkpoints in `dir`, the oldest first.
absl::StatusOr<std::vector<std::pair<int64_t, std::string>>> ListCheckpoints(
    const std::string& dir) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  if (!fs::exists(dir, error)) return found;
  fs::directory_iterator entries(dir, error);
  if (error) return SystemError("list", dir, error);
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int64_t step = 0;
    if (!absl::ConsumePrefix(&number, kPrefix) || !absl::SimpleAtoi(number, &step)) continue;
    found.emplace_back(step, entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct State {
  int64_t step = 0;
  DataPosition next;
  uint64_t shuffle_seed = 0;
  RandomState random;
  std::vector<std::string> names;
};

std::string ToText(const State& state) {
  std::string text = absl::StrFormat(
      "%s\nstep %d\nepoch %d\nbatch %d\nshuffle %d\nseed %d\nstream %d\nrandom_step %d\n", kHeader,
      state.step, state.next.epoch, state.next.batch, state.shuffle_seed, state.random.seed,
      state.random.stream, state.random.step);
  for (const std::string& name : state.names) absl::StrAppend(&text, "variable ", name, "\n");
  return text;
}

template <typename T>
bool ReadField(absl::string_view line, absl::string_view name, T& value) {
  return absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") &&
         absl::SimpleAtoi(line, &value);
}

absl::StatusOr<State> ParseState(const std::string& text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  State state;
  const bool whole = lines.size() >= 8 && lines[0] == kHeader && absl::EndsWith(text, "\n") &&
                     ReadField(lines[1], "step", state.step) &&
                     ReadField(lines[2], "epoch", state.next.epoch) &&
                     ReadField(lines[3], "batch", state.next.batch) &&
                     ReadField(lines[4], "shuffle", state.shuffle_seed) &&
                     ReadField(lines[5], "seed", state.random.seed) &&
                     ReadField(lines[6], "stream", state.random.stream) &&
                     ReadField(lines[7], "random_step", state.random.step);
  const auto counts = [](int64_t value) { return value >= 0 && value < kMostSteps; };
  if (!whole || !counts(state.step) || !counts(state.next.epoch) || !counts(state.next.batch)) {
    return DataLoss("no state of a checkpoint, or a damaged one");
  }
  for (size_t i = 8; i < lines.size(); ++i) {
    absl::string_view name = lines[i];
    if (!absl::ConsumePrefix(&name, "variable ")) {
      return DataLoss("line ", i + 1, " is '", lines[i], "', expected 'variable NAME'");
    }
    state.names.emplace_back(name);
  }
  return state;
}

// The values of the persistable variables that have one.
absl::StatusOr<std::vector<NamedTensor>> ValuesOf(Trainer& trainer) {
  std::vector<NamedTensor> values;
  for (const std::string& name : trainer.persistables()) {
    const Variable* variable = trainer.scope()->root().FindLocal(name);
    if (variable == nullptr || !variable->tensor.has_memory()) continue;
    Tensor tensor = variable->tensor;
    if (!tensor.place().on_host()) {
      INTERP_ASSIGN_OR_RETURN(tensor, CopyToHost(tensor, SystemAllocator()));
    }
    values.emplace_back(name, std::move(tensor));
  }
  return values;
}

absl::Status WriteFiles(const std::string& folder, const State& state,
                        const std::vector<NamedTensor>& values) {
  INTERP_RETURN_IF_ERROR(WriteCombinedParams(folder + "/persistables.pdiparams", values));
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(folder + "/state.txt"));
  INTERP_RETURN_IF_ERROR(writer.Append(ToText(state)));
  INTERP_RETURN_IF_ERROR(writer.Commit());
  return Synchronize(folder);
}

// What processes that were killed have left.
void RemoveUnfinished(const std::string& dir) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    if (absl::StartsWith(entry.path().filename().string(), kUnfinished)) {
      fs::remove_all(entry.path(), error);
    }
  }
}

absl::Status RemoveOld(const std::string& dir, int keep) {
  INTERP_ASSIGN_OR_RETURN(const auto checkpoints, ListCheckpoints(dir));
  for (size_t i = 0; i + static_cast<size_t>(keep) < checkpoints.size(); ++i) {
    std::error_code error;
    fs::remove_all(checkpoints[i].second, error);
    if (error) return SystemError("remove", checkpoints[i].second, error);
  }
  return absl::OkStatus();
}

absl::Status Restore(const State& state, const std::string& folder, Trainer& trainer) {
  std::vector<ParamDecl> declared;
  for (const std::string& name : state.names) {
    const std::vector<std::string>& known = trainer.persistables();
    if (!std::binary_search(known.begin(), known.end(), name)) {
      return InvalidArgument("'", folder, "' has variable '", name, "', which the program lacks");
    }
    declared.push_back({.name = name, .dtype = DType::kUndefined, .dims = {}});
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<NamedTensor> values,
                          ReadParams(folder + "/persistables.pdiparams", declared));
  for (auto& [name, tensor] : values) {
    Variable& variable = *trainer.scope()->root().FindOrCreate(name);
    variable.tensor = std::move(tensor);
    ++variable.version;
  }
  trainer.SetNumSteps(state.step);
  trainer.core().SetRandomState(state.random);
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareCheckpoints(const std::string& dir, bool resume) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return SystemError("make", dir, error);
  if (access(dir.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to '", dir, "'"));
  }
  if (resume) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const auto checkpoints, ListCheckpoints(dir));
  if (checkpoints.empty()) return absl::OkStatus();
  return InvalidArgument("'", checkpoints.back().second,
                         "' is of another training: expected a folder without checkpoints, or "
                         "going on from them");
}

absl::Status WriteCheckpoint(const std::string& dir, Trainer& trainer, DataPosition next,
                             uint64_t shuffle_seed, int keep) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return SystemError("make", dir, error);
  RemoveUnfinished(dir);
  State state{.step = trainer.num_steps(),
              .next = next,
              .shuffle_seed = shuffle_seed,
              .random = trainer.core().random_state(),
              .names = {}};
  INTERP_ASSIGN_OR_RETURN(const std::vector<NamedTensor> values, ValuesOf(trainer));
  for (const NamedTensor& value : values) state.names.push_back(value.first);
  const std::string unfinished = absl::StrCat(dir, "/", kUnfinished, getpid());
  const std::string final = absl::StrCat(dir, "/", kPrefix, state.step);
  fs::create_directory(unfinished, error);
  if (error) return SystemError("make", unfinished, error);
  INTERP_RETURN_IF_ERROR(WriteFiles(unfinished, state, values));
  fs::remove_all(final, error);
  fs::rename(unfinished, final, error);
  if (error) return SystemError("rename to", final, error);
  INTERP_RETURN_IF_ERROR(Synchronize(dir));
  return RemoveOld(dir, keep);
}

absl::StatusOr<std::optional<DataPosition>> ReadCheckpoint(const std::string& dir, Trainer& trainer,
                                                           uint64_t shuffle_seed) {
  INTERP_ASSIGN_OR_RETURN(const auto checkpoints, ListCheckpoints(dir));
  if (checkpoints.empty()) return std::optional<DataPosition>();
  const std::string& folder = checkpoints.back().second;
  INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(folder + "/state.txt", kMaxStateBytes));
  absl::StatusOr<State> state = ParseState(text);
  if (!state.ok()) return Annotate(state.status(), folder + "/state.txt");
  if (state->shuffle_seed != shuffle_seed) {
    return InvalidArgument("'", folder, "' goes on with seed ", state->shuffle_seed,
                           ", but the seed is ", shuffle_seed);
  }
  INTERP_RETURN_IF_ERROR(Restore(*state, folder, trainer));
  return std::optional<DataPosition>(state->next);
}

}  // namespace interp
