#include "interpreter/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"
#include "core/base/errno_status.h"
#include "core/device/device_heap.h"
#include "core/io/file.h"
#include "core/io/params.h"

namespace interp {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "step-";
constexpr absl::string_view kUnfinished = ".unfinished-";
constexpr absl::string_view kState = "/state.txt";
constexpr absl::string_view kValues = "/persistables.pdiparams";
constexpr absl::string_view kLock = "/.lock";
constexpr size_t kMaxStateBytes = size_t{64} << 20;

using Steps = std::vector<std::pair<int64_t, std::string>>;

absl::Status SystemError(absl::string_view what, const std::string& path, std::error_code error) {
  return ErrnoStatus(error.value(), absl::StrCat("cannot ", what, " '", path, "'"));
}

// Names of a folder are on the disk only once the folder is.
absl::Status Synchronize(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (done) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("cannot synchronize '", folder, "'"));
}

// The folders step-N in `dir`, the oldest first.
absl::StatusOr<Steps> ListCheckpoints(const std::string& dir) {
  Steps found;
  std::error_code error;
  if (!fs::exists(dir, error)) return found;
  fs::directory_iterator entries(dir, error);
  if (error) return SystemError("list", dir, error);
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    absl::string_view number = name;
    int64_t step = 0;
    if (!absl::ConsumePrefix(&number, kPrefix) || !absl::SimpleAtoi(number, &step)) continue;
    std::error_code unknown;
    if (!entries->is_directory(unknown)) continue;
    found.emplace_back(step, entries->path().string());
  }
  if (error) return SystemError("list", dir, error);
  std::sort(found.begin(), found.end());
  return found;
}

// The values of the persistable variables that have one.
absl::StatusOr<std::vector<NamedTensor>> ValuesOf(Trainer& trainer) {
  std::vector<NamedTensor> values;
  for (const ParamDecl& declared : trainer.persistables()) {
    const std::string& name = declared.name;
    const Variable* variable = trainer.scope()->root().FindLocal(name);
    if (variable == nullptr || !variable->tensor.has_memory()) continue;
    Tensor tensor = variable->tensor;
    INTERP_RETURN_IF_ERROR(MoveToHost(tensor));
    values.emplace_back(name, std::move(tensor));
  }
  return values;
}

absl::Status WriteFiles(const std::string& folder, const CheckpointState& state,
                        const std::vector<NamedTensor>& values) {
  INTERP_RETURN_IF_ERROR(WriteCombinedParams(absl::StrCat(folder, kValues), values));
  INTERP_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(absl::StrCat(folder, kState)));
  INTERP_RETURN_IF_ERROR(writer.Append(ToText(state)));
  INTERP_RETURN_IF_ERROR(writer.Commit());
  return Synchronize(folder);
}

// What processes that were killed have left.
void RemoveUnfinished(const std::string& dir) {
  std::error_code error;
  fs::directory_iterator entries(dir, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code kept;
    if (absl::StartsWith(entries->path().filename().string(), kUnfinished)) {
      fs::remove_all(entries->path(), kept);
    }
  }
}

// Gives the folder its final name. One of that name changes places with it, so that at any moment
// one of them is there.
absl::Status PutInPlace(const std::string& unfinished, const std::string& final) {
  const int exchanged =
      renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE);
  std::error_code error;
  if (exchanged == 0) {
    fs::remove_all(unfinished, error);
    if (error) return SystemError("remove", unfinished, error);
    return absl::OkStatus();
  }
  if (errno != ENOENT) fs::remove_all(final, error);  // file systems that cannot exchange
  fs::rename(unfinished, final, error);
  if (error) return SystemError("rename to", final, error);
  return absl::OkStatus();
}

// Folders of later steps are none that the training at `step` has written: they do not count.
absl::Status RemoveOld(const std::string& dir, int64_t step, int keep) {
  INTERP_ASSIGN_OR_RETURN(Steps checkpoints, ListCheckpoints(dir));
  std::erase_if(checkpoints, [&](const auto& found) { return found.first > step; });
  for (size_t i = 0; i + static_cast<size_t>(keep) < checkpoints.size(); ++i) {
    std::error_code error;
    fs::remove_all(checkpoints[i].second, error);
    if (error) return SystemError("remove", checkpoints[i].second, error);
  }
  return absl::OkStatus();
}

struct Loaded {
  CheckpointState state;
  std::vector<NamedTensor> values;
};

// What is wrong with the files of one checkpoint is a loss, whatever their readers call it.
absl::Status AsLoss(const absl::Status& status) {
  const bool of_the_files =
      absl::IsNotFound(status) || absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
  return of_the_files ? absl::DataLossError(status.message()) : status;
}

absl::StatusOr<CheckpointState> ReadState(const std::string& folder) {
  const std::string path = absl::StrCat(folder, kState);
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxStateBytes);
  if (!text.ok()) return AsLoss(text.status());
  return Annotate(ParseCheckpointState(*text), path);
}

absl::StatusOr<Loaded> ReadAll(const std::string& folder) {
  Loaded loaded;
  INTERP_ASSIGN_OR_RETURN(loaded.state, ReadState(folder));
  std::vector<ParamDecl> of_any_type;
  for (const std::string& name : loaded.state.names)
    of_any_type.push_back({.name = name, .dtype = DType::kUndefined, .dims = {}});
  absl::StatusOr<std::vector<NamedTensor>> values =
      ReadParams(absl::StrCat(folder, kValues), of_any_type);
  if (!values.ok()) return AsLoss(values.status());
  const std::optional<uint64_t> checksum = loaded.state.checksum;
  if (checksum.has_value() && *checksum != ChecksumOf(loaded.state, *values)) {
    return DataLoss(folder, ": damaged: the checksum differs");
  }
  loaded.values = *std::move(values);
  return loaded;
}

// The newest that can be read; nullopt when there is none. `passed_over` gets what is wrong with
// those after it.
absl::StatusOr<std::optional<Loaded>> ReadNewest(const Steps& checkpoints, Resumed& resumed) {
  absl::Status first;
  for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) {
    absl::StatusOr<Loaded> loaded = ReadAll(it->second);
    if (loaded.ok()) {
      resumed.folder = it->second;
      return *std::move(loaded);
    }
    // One of a newer interp is no loss: training on from an older one would write over it.
    if (!absl::IsDataLoss(loaded.status())) return loaded.status();
    resumed.passed_over.emplace_back(loaded.status().message());
    if (first.ok()) first = loaded.status();
  }
  if (first.ok()) return std::nullopt;
  return absl::Status(first.code(),
                      absl::StrCat(first.message(),
                                   "; no other checkpoint is there to go on from: expected a copy "
                                   "of it, or that '",
                                   checkpoints.back().second, "' is removed"));
}

// A run takes persistable variables of any dims, so what it left may have others than are declared:
// those that --params takes, or that the variable has before the first step. The value is not
// brought to the declared ones: the training before had it as it is.
absl::Status CheckFits(const Tensor& saved, const ParamDecl& declared, const Variable* first) {
  const absl::Status fits = CheckDeclared(saved.dtype, saved.shape, declared);
  if (fits.ok() || (saved.dtype != declared.dtype && !declared.unused)) return fits;
  const bool as_first =
      first != nullptr && first->tensor.has_memory() && first->tensor.shape == saved.shape;
  if (as_first || CheckTaken(saved.dtype, saved.shape, saved.lod, declared).ok()) {
    return absl::OkStatus();
  }
  return fits;
}

absl::Status CheckFits(const std::vector<NamedTensor>& values, const Trainer& trainer) {
  absl::flat_hash_map<absl::string_view, const Tensor*> saved;
  for (const auto& [name, tensor] : values) saved[name] = &tensor;
  for (const ParamDecl& declared : trainer.persistables()) {
    const Variable* variable = trainer.scope()->root().FindLocal(declared.name);
    const auto it = saved.find(declared.name);
    if (it == saved.end()) {
      if (variable == nullptr || !variable->tensor.has_memory()) continue;
      return InvalidArgument("lacks variable '", declared.name, "', which the program has");
    }
    const absl::Status fits = CheckFits(*it->second, declared, variable);
    if (!fits.ok()) return Annotate(fits, absl::StrCat("variable '", declared.name, "'"));
    saved.erase(it);
  }
  if (saved.empty()) return absl::OkStatus();
  return InvalidArgument("has variable '", saved.begin()->first, "', which the program lacks");
}

void Apply(Loaded&& loaded, Trainer& trainer) {
  for (auto& [name, tensor] : loaded.values) {
    Variable& variable = *trainer.scope()->root().FindOrCreate(name);
    variable.tensor = std::move(tensor);
    ++variable.version;
  }
  trainer.SetNumSteps(loaded.state.step);
  trainer.core().SetRandomState(loaded.state.random);
}

}  // namespace

absl::StatusOr<Checkpoints> Checkpoints::Open(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return SystemError("make", dir, error);
  if (access(dir.c_str(), W_OK | X_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write to '", dir, "'"));
  }
  absl::StatusOr<FileLock> lock = FileLock::Take(absl::StrCat(dir, kLock));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", dir,
                     "' is used by another training: expected a folder of its own, or "
                     "to start when the other has ended"));
  }
  if (!lock.ok()) return lock.status();
  return Checkpoints(dir, *std::move(lock));
}

absl::Status Checkpoints::CheckNone() const {
  INTERP_ASSIGN_OR_RETURN(const Steps checkpoints, ListCheckpoints(dir_));
  if (checkpoints.empty()) return absl::OkStatus();
  return InvalidArgument("'", checkpoints.back().second,
                         "' is of another training: expected a folder without checkpoints, or "
                         "going on from them");
}

absl::Status Checkpoints::Write(Trainer& trainer, DataPosition next, const DataOrder& order,
                                int keep) {
  RemoveUnfinished(dir_);
  CheckpointState state{.step = trainer.num_steps(),
                        .next = next,
                        .order = order,
                        .random = trainer.core().random_state(),
                        .names = {}};
  INTERP_ASSIGN_OR_RETURN(const std::vector<NamedTensor> values, ValuesOf(trainer));
  for (const NamedTensor& value : values) state.names.push_back(value.first);
  state.checksum = ChecksumOf(state, values);
  const std::string unfinished = absl::StrCat(dir_, "/", kUnfinished, getpid());
  const std::string final = absl::StrCat(dir_, "/", kPrefix, state.step);
  std::error_code error;
  fs::create_directory(unfinished, error);
  if (error) return SystemError("make", unfinished, error);
  const absl::Status written = WriteFiles(unfinished, state, values);
  if (!written.ok()) {
    fs::remove_all(unfinished, error);  // the disk may be full
    return written;
  }
  INTERP_RETURN_IF_ERROR(PutInPlace(unfinished, final));
  INTERP_RETURN_IF_ERROR(Synchronize(dir_));
  return RemoveOld(dir_, state.step, keep);
}

absl::StatusOr<std::optional<Resumed>> Checkpoints::Restore(Trainer& trainer,
                                                            const DataOrder& order) const {
  INTERP_ASSIGN_OR_RETURN(const Steps checkpoints, ListCheckpoints(dir_));
  Resumed resumed;
  INTERP_ASSIGN_OR_RETURN(std::optional<Loaded> loaded, ReadNewest(checkpoints, resumed));
  if (!loaded.has_value()) return std::nullopt;
  const absl::Status same_order = CheckSameOrder(loaded->state.order, order);
  if (!same_order.ok()) return Annotate(same_order, absl::StrCat("'", resumed.folder, "'"));
  const absl::Status fits = CheckFits(loaded->values, trainer);
  if (!fits.ok()) return Annotate(fits, absl::StrCat("'", resumed.folder, "'"));
  resumed.next = loaded->state.next;
  Apply(*std::move(loaded), trainer);
  return resumed;
}

bool IsCheckpoint(const std::string& path) {
  std::error_code error;
  return fs::exists(absl::StrCat(path, kState), error);
}

absl::StatusOr<std::vector<NamedTensor>> ReadCheckpointValues(const std::string& folder) {
  INTERP_ASSIGN_OR_RETURN(Loaded loaded, ReadAll(folder));
  return std::move(loaded.values);
}

}  // namespace interp
