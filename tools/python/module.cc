// The extension module: what interp/__init__.py makes its classes of. Long work runs without the
// GIL; arrays that are fed are kept alive by the call's own references meanwhile.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "core/device/device_heap.h"
#include "interp/interp.hpp"

namespace interp::python {
namespace py = pybind11;
namespace {

// Gives the GIL away and takes it back. A thread that asks for it when the interpreter is ending
// waits for the end of the process: Python would unwind its stack, through destructors that need
// the GIL. So does Python itself from 3.14 on.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {  // the unwinding
      while (true) pause();
    }
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// What `function` gives, computed without the GIL.
template <typename Function>
auto WithoutGil(const Function& function) {
  const GilRelease release;
  return function();
}

// Arrays in order, with their LoDs.
using Feeds = std::vector<std::pair<py::array, Lod>>;
// The same of results, with names.
using Results = std::vector<std::tuple<std::string, py::array, Lod>>;

std::vector<Tensor> BorrowFeeds(const Feeds& feeds, const std::vector<std::string>& names) {
  if (feeds.size() != names.size()) {
    Check(InvalidArgument("there are ", feeds.size(), " feeds, expected ", names.size()));
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const std::string what = absl::StrCat("feed '", names[i], "'");
    Tensor& tensor = tensors.emplace_back(BorrowArray(feeds[i].first, what));
    tensor.lod = feeds[i].second;
    Check(Annotate(CheckLod(tensor.lod, tensor.shape), what));
  }
  return tensors;
}

Results GiveResults(std::vector<Tensor> fetched, const std::vector<std::string>& names) {
  Results results;
  for (size_t i = 0; i < fetched.size(); ++i) {
    Lod lod = std::move(fetched[i].lod);
    results.emplace_back(names[i], GiveArray(std::move(fetched[i])), std::move(lod));
  }
  return results;
}

std::optional<std::chrono::nanoseconds> ReadTimeout(std::optional<double> seconds) {
  // Later than this is never, and the clock's sums do not overflow.
  constexpr double kLongest = 1e9;
  if (!seconds.has_value() || *seconds >= kLongest) return std::nullopt;
  if (!(*seconds >= 0)) {
    Check(InvalidArgument("timeout is ", *seconds, ", expected 0 or more seconds"));
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(*seconds));
}

struct CoreSettings {
  std::string scheduler = "auto";
  std::string algorithms = "fast";
  int num_threads = 0;
  int num_workers = 1;
  uint64_t max_memory_bytes = 0;
  bool check_nan_inf = false;
  bool check_feed_shapes = true;
  uint64_t random_seed = 0;
  std::string file_folder;
  std::string place = "cpu";
  bool tf32 = false;
  bool cuda_graphs = false;
  std::vector<std::string> disable_passes;
  std::vector<std::string> enable_passes;
};

CoreOptions ReadCoreOptions(const CoreSettings& settings) {
  const std::tuple<const char*, int, int> counts[] = {{"num_threads", settings.num_threads, 0},
                                                      {"num_workers", settings.num_workers, 1}};
  for (const auto& [name, count, least] : counts) {
    if (count >= least && count <= kMaxThreads) continue;
    Check(InvalidArgument(name, " is ", count, ", expected ", least, " to ", kMaxThreads));
  }
  CoreOptions core;
  core.scheduler = Take(SchedulerFromName(settings.scheduler));
  core.algorithms = Take(AlgorithmsFromName(settings.algorithms));
  core.num_threads = settings.num_threads;
  core.num_workers = settings.num_workers;
  core.max_memory_bytes = settings.max_memory_bytes;
  core.check_nan_inf = settings.check_nan_inf;
  core.check_feed_shapes = settings.check_feed_shapes;
  core.random_seed = settings.random_seed;
  core.file_folder = settings.file_folder;
  const absl::StatusOr<Place> place = LoadPlace(settings.place);
  Check(Annotate(place.status(), "place"));
  core.plan.place = *place;
  core.tf32 = settings.tf32;
  core.cuda_graphs = settings.cuda_graphs;
  core.passes.disable = settings.disable_passes;
  core.passes.enable = settings.enable_passes;
  return core;
}

std::vector<std::string> NamesOf(const std::vector<PredictorVar>& vars) {
  std::vector<std::string> names;
  for (const PredictorVar& var : vars) names.push_back(var.name);
  return names;
}

// A predictor with the names that every call needs.
struct SharedPredictor {
  std::unique_ptr<Predictor> predictor;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

SharedPredictor LoadPredictor(const std::string& model, const std::optional<std::string>& params,
                              const std::vector<std::string>& feeds,
                              const std::vector<std::string>& fetches, int num_streams,
                              const CoreSettings& settings) {
  const PredictorOptions options{.feeds = feeds,
                                 .fetches = fetches,
                                 .num_streams = num_streams,
                                 .core = ReadCoreOptions(settings)};
  SharedPredictor made;
  made.predictor = Take(WithoutGil([&] { return Predictor::Load(model, params, options); }));
  made.inputs = NamesOf(made.predictor->inputs());
  made.outputs = NamesOf(made.predictor->outputs());
  return made;
}

Results RunPredictor(SharedPredictor& self, const Feeds& feeds, std::optional<double> timeout,
                     const std::stop_source* cancel) {
  const std::vector<Tensor> tensors = BorrowFeeds(feeds, self.inputs);
  PredictOptions options{.timeout = ReadTimeout(timeout)};
  if (cancel != nullptr) options.stop = cancel->get_token();
  auto fetched = WithoutGil([&] { return self.predictor->Run(tensors, options); });
  return GiveResults(Take(std::move(fetched)), self.outputs);
}

// Name, dtype of the program, dtype of arrays, dims.
using VarRow = std::tuple<std::string, std::string, std::string, std::vector<int64_t>>;

std::vector<VarRow> DescribeVars(const std::vector<PredictorVar>& vars) {
  std::vector<VarRow> rows;
  for (const PredictorVar& var : vars) {
    rows.emplace_back(var.name, std::string(Name(var.dtype)), ArrayDType(var.dtype), var.dims);
  }
  return rows;
}

std::string PlanJson(const Program& program, const std::vector<std::string>& feeds,
                     const std::vector<std::string>& fetches) {
  const CompiledProgram compiled = Take(
      WithoutGil([&] { return Compile(program, feeds, fetches, {}, {}, OpRegistry::Global()); }));
  return PrintPlans(compiled.plans, PlanStage::kPlan, PlanFormat::kJson, &compiled.program);
}

// Methods of the class look at block 0, which a text without blocks does not have.
Program ParseWithBlocks(const std::string& text) {
  Program program = Take(ParseProgram(text));
  if (program.blocks.empty()) {
    Check(InvalidArgument("the text describes no program, expected 'block 0'"));
  }
  return program;
}

std::pair<Program, Program> MinimizeProgram(const Program& main, const Program& startup,
                                            const std::string& loss, const std::string& optimizer,
                                            const std::vector<std::string>& no_grad,
                                            const std::vector<std::string>& checkpoints) {
  const MinimizeOptions options{.backward = {.loss = loss, .no_grad = no_grad},
                                .optimizer = Take(ParseOptimizerSpec(optimizer)),
                                .checkpoints = checkpoints};
  Check(VerifyProgram(main, OpRegistry::Global()));
  TrainingPrograms made =
      Take(WithoutGil([&] { return Minimize(main, startup, options, OpRegistry::Global()); }));
  return {std::move(made.main), std::move(made.startup)};
}

// A trainer, which takes one call at a time: threads of Python wait for their turn, without the
// GIL.
struct SharedTrainer {
  std::unique_ptr<Trainer> trainer;
  std::vector<std::string> feeds;
  std::mutex mutex;
};

std::unique_ptr<SharedTrainer> MakeTrainer(const Program& main, const Program* startup,
                                           const std::vector<std::string>& feeds,
                                           const std::vector<std::string>& fetches,
                                           const CoreSettings& settings) {
  const TrainerOptions options{
      .feeds = feeds, .fetches = fetches, .core = ReadCoreOptions(settings)};
  auto made = std::make_unique<SharedTrainer>();
  const absl::Status status = WithoutGil([&]() -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(made->trainer, Trainer::Create(main, nullptr, options));
    return startup != nullptr ? made->trainer->Initialize(*startup) : absl::OkStatus();
  });
  Check(status);
  for (const FeedSpec& feed : made->trainer->feeds()) made->feeds.push_back(feed.name);
  return made;
}

Results StepTrainer(SharedTrainer& self, const Feeds& feeds, std::optional<double> timeout) {
  const std::vector<Tensor> tensors = BorrowFeeds(feeds, self.feeds);
  const RunOptions options{.timeout = ReadTimeout(timeout)};
  auto fetched = WithoutGil([&] {
    const std::lock_guard lock(self.mutex);
    return self.trainer->Step(tensors, options);
  });
  return GiveResults(Take(std::move(fetched)), self.trainer->fetches());
}

// Copies: the next step changes the originals.
std::map<std::string, py::array> CopyParameters(SharedTrainer& self) {
  std::vector<NamedTensor> copies;
  const absl::Status status = WithoutGil([&]() -> absl::Status {
    const std::lock_guard lock(self.mutex);
    for (const ParamDecl& decl : self.trainer->persistables()) {
      const Variable* variable = self.trainer->scope()->FindLocal(decl.name);
      if (variable == nullptr || !variable->tensor.has_memory()) continue;
      const Tensor& tensor = variable->tensor;
      INTERP_ASSIGN_OR_RETURN(Tensor copy, tensor.place().on_host()
                                               ? tensor.Clone(SystemAllocator())
                                               : CopyToHost(tensor, SystemAllocator()));
      copies.emplace_back(decl.name, std::move(copy));
    }
    return absl::OkStatus();
  });
  Check(status);
  std::map<std::string, py::array> arrays;
  for (auto& [name, tensor] : copies) arrays.emplace(name, GiveArray(std::move(tensor)));
  return arrays;
}

void LoadParameters(SharedTrainer& self, const std::string& path) {
  Check(WithoutGil([&]() -> absl::Status {
    const std::lock_guard lock(self.mutex);
    INTERP_ASSIGN_OR_RETURN(auto read, ReadParameters(path, self.trainer->persistables()));
    for (auto& [name, tensor] : read) {
      Variable* const variable = self.trainer->scope()->FindOrCreate(name);
      variable->tensor = std::move(tensor);
      ++variable->version;
    }
    return absl::OkStatus();
  }));
}

void BindSettings(py::module_& m) {
  py::class_<CoreSettings>(m, "CoreSettings")
      .def(py::init<>())
      .def_readwrite("scheduler", &CoreSettings::scheduler)
      .def_readwrite("algorithms", &CoreSettings::algorithms)
      .def_readwrite("num_threads", &CoreSettings::num_threads)
      .def_readwrite("num_workers", &CoreSettings::num_workers)
      .def_readwrite("max_memory_bytes", &CoreSettings::max_memory_bytes)
      .def_readwrite("check_nan_inf", &CoreSettings::check_nan_inf)
      .def_readwrite("check_feed_shapes", &CoreSettings::check_feed_shapes)
      .def_readwrite("random_seed", &CoreSettings::random_seed)
      .def_readwrite("file_folder", &CoreSettings::file_folder)
      .def_readwrite("place", &CoreSettings::place)
      .def_readwrite("tf32", &CoreSettings::tf32)
      .def_readwrite("cuda_graphs", &CoreSettings::cuda_graphs)
      .def_readwrite("disable_passes", &CoreSettings::disable_passes)
      .def_readwrite("enable_passes", &CoreSettings::enable_passes);
  py::class_<std::stop_source>(m, "CancelToken",
                               "Ends the calls that it is given to, from another thread.")
      .def(py::init<>())
      .def("cancel", [](std::stop_source& self) {
        // Callbacks of runs in progress: they need no GIL, but may wait for locks of theirs.
        WithoutGil([&] { return self.request_stop(); });
      });
}

void BindPredictor(py::module_& m) {
  py::class_<SharedPredictor>(m, "Predictor")
      .def(py::init(&LoadPredictor))
      .def("inputs",
           [](const SharedPredictor& self) { return DescribeVars(self.predictor->inputs()); })
      .def("outputs",
           [](const SharedPredictor& self) { return DescribeVars(self.predictor->outputs()); })
      .def("num_streams", [](const SharedPredictor& self) { return self.predictor->num_streams(); })
      .def("plan_json",
           [](const SharedPredictor& self) {
             const InterpreterCore& core = self.predictor->core();
             return PrintPlans(core.plans(), PlanStage::kPlan, PlanFormat::kJson, &core.program());
           })
      .def("run", &RunPredictor);
}

void BindProgram(py::module_& m) {
  py::class_<Program>(m, "Program")
      .def_static("read",
                  [](const std::string& path) {
                    return Take(WithoutGil([&] { return ReadAnyProgram(path); }));
                  })
      .def_static("parse", &ParseWithBlocks)
      .def("to_text", [](const Program& self) { return ToText(self); })
      .def("to_json", [](const Program& self) { return ToJson(self); })
      .def("serialize", [](const Program& self) { return py::bytes(Take(SaveProgram(self))); })
      .def("plan_json", &PlanJson)
      .def("minimize", &MinimizeProgram);
}

void BindTrainer(py::module_& m) {
  py::class_<SharedTrainer>(m, "Trainer")
      .def(py::init(&MakeTrainer))
      .def("feeds", [](const SharedTrainer& self) { return self.feeds; })
      .def("fetches", [](const SharedTrainer& self) { return self.trainer->fetches(); })
      .def("step", &StepTrainer)
      .def("num_steps",
           [](SharedTrainer& self) {
             return WithoutGil([&] {
               const std::lock_guard lock(self.mutex);
               return self.trainer->num_steps();
             });
           })
      .def("parameters", &CopyParameters)
      .def("load_parameters", &LoadParameters);
}

}  // namespace
}  // namespace interp::python

PYBIND11_MODULE(_interp, m) {
  m.doc() = "What the package interp is made of; see interp/__init__.py.";
  m.attr("__version__") = INTERP_VERSION_STRING;
  // pybind11 finds NumPy's functions when it first needs one, and keeps other threads from that by
  // a lock; the import inside gives Python's lock away, so that threads that meet here would wait
  // for each other.
  pybind11::dtype::of<float>();
  interp::python::BindSettings(m);
  interp::python::BindPredictor(m);
  interp::python::BindProgram(m);
  interp::python::BindTrainer(m);
}
