// Ranks: the processes that a launcher (mpirun, srun) has started for one command, and what each of
// them reads and writes.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/comm/rings.h"
#include "core/place.h"
#include "core/status.h"
#include "tools/exit_code.h"

namespace interp {

struct RankFlags {
  std::string timeout = "5m";
  bool check = false;
  std::vector<std::string> rings;  // "3=0,2"
};
void AddRankFlags(CLI::App& command, RankFlags& flags);

// The place of one of several ranks: for "cuda" the GPU that has its number among the ranks of its
// machine, as the launcher's environment tells, and its rank for "{rank}". InvalidArgument where
// the launcher does not tell.
absl::StatusOr<std::string> PlaceOfRank(const std::string& place, int rank);

// How many of the ranks run on this machine, as the launcher tells; else 1.
int RanksOfThisMachine();

// InvalidArgument where a launcher has started several processes: what `command` writes would be
// written by each of them.
absl::Status CheckStartedAlone(absl::string_view command);

class Ranks {
 public:
  // Meets the others where a launcher has started several, which its environment tells. From then
  // on only rank 0 writes to standard output, and the errors of others start with "rank 3: ".
  // Errors: InvalidArgument for flags; NotFound without MPI; DeadlineExceeded where not all come.
  static absl::StatusOr<Ranks> Join(const RankFlags& flags);
  // Says why ranks could not be joined, and returns the exit code.
  static ExitCode FailToJoin(const absl::Status& status);
  // What was wrong with the rings, which the others have to be told: by End.
  const absl::Status& status() const { return status_; }

  // Null where this process is alone.
  const std::shared_ptr<Rings>& rings() const { return rings_; }
  int rank() const { return rings_ == nullptr ? 0 : rings_->rank(); }
  int size() const { return rings_ == nullptr ? 1 : rings_->size(); }

  // Puts the rank for "{rank}" in names of files to read.
  void ForReading(std::initializer_list<std::string*> paths) const;
  void ForReading(std::vector<std::string>& paths) const;
  // The same for files to write. One without "{rank}" is rank 0's: for others it becomes empty.
  void ForWriting(std::initializer_list<std::string*> paths) const;
  // Puts the place of this rank for that of all (PlaceOfRank); alone it stays.
  absl::Status ForPlace(std::string* place) const;
  // InvalidArgument for a file that each rank has to have for itself, and whose name has no
  // "{rank}".
  absl::Status CheckOwn(absl::string_view flag, const std::string& path) const;

  // Says on standard error why ranks with GPUs speak by their hosts, where they do.
  void WarnOfHosts(PlaceKind kind) const;

  // From here on this rank has no part in what the others compute.
  void RunIsDone() { run_is_done_ = true; }
  // The end of the command. A rank whose run has failed ends all others, with its exit code; one
  // that failed later waits for them.
  ExitCode End(ExitCode code) const;

 private:
  std::shared_ptr<Rings> rings_;
  absl::Status status_;
  bool run_is_done_ = false;
};

// Runs a command (see RunCommand) as one of several processes, or as all there is: joins the
// others, puts the place of this rank for `place`, and ends as `body` does.
ExitCode AsRank(const RankFlags& flags, std::string* place,
                absl::FunctionRef<absl::StatusOr<ExitCode>(Ranks&, ExitCode& blame)> body);

}  // namespace interp
