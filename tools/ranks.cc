#include "tools/ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/comm/device_communicator.h"
#include "core/comm/mpi_transport.h"
#include "tools/exit_code.h"
#include "tools/repeated_flag.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr const char* kGroup = "Several ranks";
constexpr absl::string_view kPlaceholder = "{rank}";

std::optional<int> FindNumber(const char* variable) {
  const char* const value = std::getenv(variable);
  int number = 0;
  if (value == nullptr || !absl::SimpleAtoi(value, &number)) return std::nullopt;
  return number;
}
// 0: no such number.
int NumberOf(const char* variable) { return FindNumber(variable).value_or(0); }

// Of this process among those of its machine, from 0, as the same launchers tell.
std::optional<int> LocalRank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const auto rank = FindNumber(name); rank.has_value()) return rank;
  }
  return std::nullopt;
}

// How many processes a launcher has started: Open MPI's, one of MPICH's kind, or Slurm's with PMIx.
// 1: none has.
int LaunchedSize() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const int size = NumberOf(name); size > 0) return size;
  }
  const int tasks = std::getenv("PMIX_RANK") == nullptr ? 0 : NumberOf("SLURM_STEP_NUM_TASKS");
  return std::max(tasks, 1);
}

struct Ring {
  int number = 0;
  std::vector<int> members;
};

// "3=0,2", of `size` ranks.
absl::StatusOr<Ring> ParseRing(const std::string& text, int size) {
  const std::vector<std::string> parts = absl::StrSplit(text, '=');
  Ring ring;
  bool fits = parts.size() == 2 && absl::SimpleAtoi(parts[0], &ring.number);
  for (const absl::string_view member : absl::StrSplit(parts.back(), ',')) {
    int rank = 0;
    fits = fits && absl::SimpleAtoi(member, &rank);
    ring.members.push_back(rank);
  }
  if (!fits) return InvalidArgument("'", text, "', expected RING=RANK,RANK..., as in 3=0,2");
  if (ring.number < 0 || ring.number > Rings::kMaxRingId ||
      ring.number == Communicator::kOwnRing0) {
    return InvalidArgument("'", text, "', expected a ring from 0 to ", Rings::kMaxRingId, " but ",
                           Communicator::kOwnRing0, ", which ranks use themselves");
  }
  const std::vector<int>& members = ring.members;
  const absl::flat_hash_set<int> different(members.begin(), members.end());
  const auto [least, most] = std::minmax_element(members.begin(), members.end());
  if (different.size() == members.size() && *least >= 0 && *most < size) return ring;
  return InvalidArgument("'", text, "', expected different ranks from 0 to ", size - 1,
                         size == 1 ? ": a launcher such as mpirun starts others" : "");
}

absl::Status AddRing(const std::string& text, Rings& rings) {
  // What is wrong is wrong on all ranks.
  INTERP_ASSIGN_OR_RETURN(Ring ring, ParseRing(text, rings.size()));
  const bool mine = absl::c_linear_search(ring.members, rings.rank());
  // Each rank is told of all rings, and has those that it is in.
  return mine ? rings.Add(ring.number, std::move(ring.members)) : absl::OkStatus();
}

// Of a process that is alone: what is wrong is said, and there is nothing to join.
absl::Status CheckRings(const std::vector<std::string>& rings) {
  for (const std::string& ring : rings) {
    INTERP_RETURN_IF_ERROR(Annotate(ParseRing(ring, 1).status(), "--ring"));
  }
  return absl::OkStatus();
}

void SilenceStandardOutput() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

}  // namespace

int RanksOfThisMachine() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}) {
    if (const int size = NumberOf(name); size > 0) return size;
  }
  return 1;
}

absl::StatusOr<std::string> PlaceOfRank(const std::string& place, int rank) {
  if (place != Name(PlaceKind::kCuda)) {
    return absl::StrReplaceAll(place, {{kPlaceholder, absl::StrCat(rank)}});
  }
  const std::optional<int> local = LocalRank();
  if (local.has_value()) return absl::StrCat(place, ":", *local);
  return InvalidArgument(
      "--place cuda: the launcher does not tell which GPU of its machine this rank is to have; "
      "expected cuda:N, as in cuda:{rank}");
}

void AddRankFlags(CLI::App& command, RankFlags& flags) {
  command
      .add_option(
          "--comm-timeout", flags.timeout,
          "longest that a rank waits for others, to meet them (10s at least) or in one collective, "
          "as in 30s")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_flag("--check-collectives", flags.check,
                "compare what ranks are about to do before each collective")
      ->group(kGroup);
  AddRepeatedFlag(command, "--ring", flags.rings,
                  "a group of ranks that ops name by number, RING=RANK,RANK...; repeatable")
      .group(kGroup);
}

absl::Status CheckStartedAlone(absl::string_view command) {
  const int size = LaunchedSize();
  if (size == 1) return absl::OkStatus();
  return InvalidArgument("a launcher has started ", size, " processes, and `interp ", command,
                         "` is for one: they would write the same files; expected it without the "
                         "launcher");
}

ExitCode Ranks::FailToJoin(const absl::Status& status) {
  if (!absl::IsDeadlineExceeded(status)) return Fail(ExitCode::kUsage, status);
  // A thread is still within MPI_Init, with which destructors would race.
  std::_Exit(static_cast<int>(Fail(ExitCode::kRunFailed, status)));
}

absl::StatusOr<Ranks> Ranks::Join(const RankFlags& flags) {
  Ranks ranks;
  INTERP_ASSIGN_OR_RETURN(const std::chrono::nanoseconds timeout,
                          Annotate(ParseDuration(flags.timeout), "--comm-timeout"));
  const int size = LaunchedSize();
  if (size == 1) {
    INTERP_RETURN_IF_ERROR(CheckRings(flags.rings));
    return ranks;
  }
  INTERP_ASSIGN_OR_RETURN(MakeTransport mpi, Annotate(MpiTransport(), "started with other ranks"));
  const CommOptions options{
      .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout),
      .check = flags.check};
  INTERP_ASSIGN_OR_RETURN(ranks.rings_, Rings::Join(std::move(mpi), options));
  if (ranks.size() != size) {
    return InvalidArgument("a launcher has started ", size, " processes, but this MPI sees ",
                           ranks.size(),
                           ": expected the launcher of the MPI that interp was built with (with "
                           "Slurm: srun --mpi=pmix)");
  }
  if (ranks.rank() > 0) {
    SilenceStandardOutput();
    SetErrorPrefix(absl::StrCat("rank ", ranks.rank(), ": "));
  }
  for (const std::string& ring : flags.rings) {
    ranks.status_ = AddRing(ring, *ranks.rings_);
    if (ranks.status_.ok()) continue;
    ranks.status_ = Annotate(ranks.status_, "--ring");
    break;
  }
  return ranks;
}

void Ranks::ForReading(std::initializer_list<std::string*> paths) const {
  for (std::string* const path : paths) {
    *path = absl::StrReplaceAll(*path, {{kPlaceholder, absl::StrCat(rank())}});
  }
}

void Ranks::ForReading(std::vector<std::string>& paths) const {
  for (std::string& path : paths) ForReading({&path});
}

void Ranks::ForWriting(std::initializer_list<std::string*> paths) const {
  for (std::string* const path : paths) {
    if (rank() > 0 && !absl::StrContains(*path, kPlaceholder)) path->clear();
    ForReading({path});
  }
}

absl::Status Ranks::ForPlace(std::string* place) const {
  if (size() == 1) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(*place, PlaceOfRank(*place, rank()));
  return absl::OkStatus();
}

void Ranks::WarnOfHosts(PlaceKind kind) const {
  if (kind != PlaceKind::kCuda || size() == 1) return;
  const absl::Status status = DeviceCommunication(kind);
  if (status.ok()) return;
  Warn(absl::StrCat("ranks speak by their hosts, not from GPU to GPU: ", status.message()));
}

absl::Status Ranks::CheckOwn(absl::string_view flag, const std::string& path) const {
  if (path.empty() || size() == 1 || absl::StrContains(path, kPlaceholder)) return absl::OkStatus();
  return InvalidArgument(flag, " ", path, ": each of the ", size(),
                         " ranks has its own: expected {rank} in the name");
}

ExitCode Ranks::End(ExitCode code) const {
  // Who leaves waits for the others, which may be writing what came of the run.
  if (rings_ != nullptr && code != ExitCode::kOk && !run_is_done_) {
    rings_->Abort(static_cast<int>(code));
  }
  return code;
}

ExitCode AsRank(const RankFlags& flags, std::string* place,
                absl::FunctionRef<absl::StatusOr<ExitCode>(Ranks&, ExitCode& blame)> body) {
  absl::StatusOr<Ranks> ranks = Ranks::Join(flags);
  if (!ranks.ok()) return Ranks::FailToJoin(ranks.status());
  return ranks->End(RunCommand([&](ExitCode& blame) -> absl::StatusOr<ExitCode> {
    INTERP_RETURN_IF_ERROR(ranks->status());
    INTERP_RETURN_IF_ERROR(ranks->ForPlace(place));
    return body(*ranks, blame);
  }));
}

}  // namespace interp
