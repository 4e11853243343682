// Predictor: a program with its parameters, run by any number of threads.
//
//   auto predictor = Predictor::Load("model_folder");
//   auto outputs = (*predictor)->Run({image});
//
// It keeps a pool of clones of one InterpreterCore, one for each call that computes at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "core/tensor.h"
#include "interpreter/interpreter_core.h"

namespace interp {

struct PredictorOptions {
  // Variables to feed and to fetch, in order. Both empty: what the program's own feed and fetch ops
  // say.
  std::vector<std::string> feeds = {};
  std::vector<std::string> fetches = {};
  // Calls that compute side by side; further ones wait for their turn. A program that writes
  // parameters has one, whatever is asked for.
  int num_streams = 1;
  // Of each stream. num_threads 0: the CPUs that the process may use, divided by the
  // streams that there are and the workers that the scheduler takes.
  CoreOptions core = {};
};

struct PredictOptions {
  // Waiting for a stream counts.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  std::stop_token stop = {};  // the call ends with Cancelled once a stop is requested
};

// A variable that is fed or fetched. Dims of -1 are any.
struct PredictorVar {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims = {};
};

// Where a result goes.
struct OutputMemory {
  void* data = nullptr;  // aligned as the dtype wants it
  size_t size_bytes = 0;
};

// Thread-safety: all methods from any thread.
class Predictor {
 public:
  // What LoadModel reads (load_model.h): a program, or a plan of `interp compile`, of which
  // `feeds`, `fetches` and options of passes and plan have no effect, and parameters; nullopt:
  // those beside it. Errors: those of LoadModel, of TakeCompiled where it is a plan, and of
  // InterpreterCore::Create, with the path.
  static absl::StatusOr<std::unique_ptr<Predictor>> Load(
      const std::string& model, const std::optional<std::string>& params = std::nullopt,
      const PredictorOptions& options = {});
  // `scope` holds the parameters. What a run writes to a variable before it reads it is not seen
  // there (passes/local_temporaries.h).
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(Program program,
                                                           std::shared_ptr<Scope> scope,
                                                           const PredictorOptions& options = {});
  ~Predictor();

  // What is fed and fetched, in order.
  const std::vector<PredictorVar>& inputs() const { return inputs_; }
  const std::vector<PredictorVar>& outputs() const { return outputs_; }

  // Feeds are in the order of inputs() and share the caller's memory until Run returns; results are
  // in the order of outputs() and own theirs. Errors: those of InterpreterCore::Run; Cancelled and
  // DeadlineExceeded also while waiting for a stream.
  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds,
                                          const PredictOptions& options = {});
  // The same by name, in any order. InvalidArgument for a name that is missing, unknown or there
  // twice.
  absl::StatusOr<std::vector<NamedTensor>> Run(absl::Span<const NamedTensor> feeds,
                                               const PredictOptions& options = {});
  // Results are copied to memory of the caller, which is as large as they are or larger; the
  // tensors that come back use that memory. InvalidArgument, with nothing written, where one is too
  // large.
  absl::StatusOr<std::vector<Tensor>> RunInto(absl::Span<const Tensor> feeds,
                                              absl::Span<const OutputMemory> outputs,
                                              const PredictOptions& options = {});

  int num_streams() const { return num_streams_; }
  // For its plan and program; not to be run.
  const InterpreterCore& core() const { return *first_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Call {
    std::stop_token stop;
    std::optional<Clock::time_point> deadline;
  };

  Predictor(std::unique_ptr<InterpreterCore> core, int num_streams);
  // `make` gives the core that clones are made of.
  template <typename Make>
  static absl::StatusOr<std::unique_ptr<Predictor>> MakeFrom(const Make& make,
                                                             const PredictorOptions& options);
  // A core to compute with, which GiveBack returns.
  absl::StatusOr<std::unique_ptr<InterpreterCore>> TakeCore(const Call& call);
  void GiveBack(std::unique_ptr<InterpreterCore> core);

  const std::unique_ptr<InterpreterCore> first_;  // what clones are made of; never runs
  const int num_streams_;
  std::vector<PredictorVar> inputs_;
  std::vector<PredictorVar> outputs_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any freed_;
  std::vector<std::unique_ptr<InterpreterCore>> idle_;
  int num_made_ = 0;  // cores, those that compute included
};

}  // namespace interp
