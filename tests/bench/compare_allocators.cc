// Replays what a run of a program allocates and frees against our pools, malloc and mimalloc.
//
//   compare_allocators [PROGRAM [--params FILE]] [--feed NAME=FILE ...] [--turns 5] [--rounds 100]
//
// The trace is the second run of the program, in the order of the `trace` scheduler; the default is
// the digit classifier of this repository. Each allocator replays it in a process of its own, the
// allocators taking turns. "written" touches every page of each buffer, as the op that computes it
// would: memory that comes fresh from the system costs a page fault then. "held" is the most that
// the allocator had from the system at once. mimalloc is used where libmimalloc.so.2 is installed
// (Debian: libmimalloc2.0).
#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/steady_clock.h"
#include "core/storage/pool.h"
#include "interpreter/interpreter_core.h"
#include "tools/feeds.h"
#include "tools/model.h"

namespace interp {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

struct Event {
  int32_t block = 0;
  bool allocates = false;
  size_t bytes = 0;
};

struct Trace {
  std::vector<Event> events;
  int32_t num_blocks = 0;
  size_t peak_bytes = 0;  // in use
};

// The heap below a naive pool, which passes every allocation on.
class Recorder final : public MemorySource {
 public:
  std::string name() const override { return "recorder"; }

  absl::StatusOr<void*> Take(size_t bytes) override {
    absl::StatusOr<void*> memory = heap_->Take(bytes);
    if (recording_ && memory.ok()) {
      const size_t asked = bytes - kBufferAlignment;  // without the header
      live_[*memory] = {next_block_, /*allocates=*/false, asked};
      trace_.events.push_back({next_block_++, /*allocates=*/true, asked});
    }
    return memory;
  }

  void Give(void* address, size_t bytes) override {
    if (const auto it = live_.find(address); it != live_.end()) {
      trace_.events.push_back(it->second);
      live_.erase(it);
    }
    heap_->Give(address, bytes);
  }

  void Start() { recording_ = true; }
  // What is still alive is freed at the end.
  Trace Stop() {
    recording_ = false;
    Trace trace = trace_;
    for (const auto& [address, live] : live_) trace.events.push_back(live);
    return trace;
  }

 private:
  const std::shared_ptr<MemorySource> heap_ = MakeHostMemory(HostMemory::kOrdinary);
  bool recording_ = false;
  std::map<void*, Event> live_;  // how each is freed
  int32_t next_block_ = 0;
  Trace trace_;
};

Trace Record(const ModelFlags& model_flags, const FeedFlags& feed_flags) {
  Model model = Must(LoadModel(model_flags));
  const std::vector<NamedTensor> feeds = Must(ReadFeeds(model.program, feed_flags));
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const NamedTensor& feed : feeds) {
    names.push_back(feed.first);
    tensors.push_back(feed.second);
  }
  const auto recorder = std::make_shared<Recorder>();
  CoreOptions options{.scheduler = SchedulerKind::kTrace, .num_threads = 1};
  options.allocator = PoolKind::kNaive;
  options.host_memory = recorder;
  const auto core =
      Must(InterpreterCore::Create(std::move(model.program), names, {}, model.scope, options));
  Must(core->Run(tensors));
  recorder->Start();
  Must(core->Run(tensors));
  return recorder->Stop();
}

// What an allocator is replayed with. Blocks have numbers, below Trace::num_blocks.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void* Allocate(int32_t block, size_t bytes) = 0;
  virtual void Free(int32_t block) = 0;
  // Bytes from the system, now or at most.
  virtual size_t held() = 0;
};

class PoolSubject final : public Subject {
 public:
  PoolSubject(PoolKind kind, int32_t num_blocks)
      : pool_(Pool::OnHost({.kind = kind})), blocks_(num_blocks) {}
  void* Allocate(int32_t block, size_t bytes) override {
    blocks_[block] = Must(pool_->Allocate(bytes));
    return blocks_[block]->data;
  }
  void Free(int32_t block) override { blocks_[block].reset(); }
  size_t held() override { return pool_->pool_stats().peak_reserved_bytes; }

 private:
  const std::shared_ptr<Pool> pool_;
  std::vector<BufferRef> blocks_;
};

class MallocSubject final : public Subject {
 public:
  explicit MallocSubject(int32_t num_blocks) : blocks_(num_blocks), before_(FromSystem()) {}
  void* Allocate(int32_t block, size_t bytes) override {
    return blocks_[block] = std::aligned_alloc(kBufferAlignment, bytes);
  }
  void Free(int32_t block) override { std::free(blocks_[block]); }
  size_t held() override { return FromSystem() - std::min(FromSystem(), before_); }

 private:
  static size_t FromSystem() {
    const struct mallinfo2 info = mallinfo2();
    return info.arena + info.hblkhd;
  }
  std::vector<void*> blocks_;
  const size_t before_;
};

// Not linked, as the library would replace malloc everywhere.
class MimallocSubject final : public Subject {
 public:
  explicit MimallocSubject(int32_t num_blocks) : blocks_(num_blocks) {
    void* const library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) return;
    allocate_ = reinterpret_cast<decltype(allocate_)>(dlsym(library, "mi_malloc_aligned"));
    free_ = reinterpret_cast<decltype(free_)>(dlsym(library, "mi_free"));
    info_ = reinterpret_cast<decltype(info_)>(dlsym(library, "mi_process_info"));
  }
  bool installed() const { return allocate_ != nullptr && free_ != nullptr && info_ != nullptr; }
  void* Allocate(int32_t block, size_t bytes) override {
    return blocks_[block] = allocate_(bytes, kBufferAlignment);
  }
  void Free(int32_t block) override { free_(blocks_[block]); }
  size_t held() override {
    size_t ignored = 0;
    size_t peak_commit = 0;
    info_(&ignored, &ignored, &ignored, &ignored, &ignored, &ignored, &peak_commit, &ignored);
    return peak_commit;
  }

 private:
  std::vector<void*> blocks_;
  void* (*allocate_)(size_t, size_t) = nullptr;
  void (*free_)(void*) = nullptr;
  void (*info_)(size_t*, size_t*, size_t*, size_t*, size_t*, size_t*, size_t*, size_t*) = nullptr;
};

// By the names of the table; null when it is not installed.
std::unique_ptr<Subject> MakeSubject(const std::string& name, int32_t num_blocks) {
  if (name == "malloc") return std::make_unique<MallocSubject>(num_blocks);
  if (name != "mimalloc") {
    return std::make_unique<PoolSubject>(Must(PoolKindFromName(name)), num_blocks);
  }
  auto mimalloc = std::make_unique<MimallocSubject>(num_blocks);
  if (!mimalloc->installed()) return nullptr;
  return mimalloc;
}

struct Result {
  double ns_per_op = 0;
  double written_ns_per_op = 0;
  size_t held_bytes = 0;
};

void Touch(void* data, size_t bytes) {
  constexpr size_t kPage = 4096;
  auto* at = static_cast<volatile char*>(data);
  for (size_t i = 0; i < bytes; i += kPage) at[i] = 1;
}

template <typename AfterAllocation>
void ReplayOnce(const Trace& trace, Subject& subject, const AfterAllocation& then) {
  for (const Event& event : trace.events) {
    if (event.allocates) {
      then(subject.Allocate(event.block, std::max(event.bytes, kBufferAlignment)), event.bytes);
    } else {
      subject.Free(event.block);
    }
  }
}

// Nanoseconds per event of the median round.
template <typename AfterAllocation>
double Time(const Trace& trace, Subject& subject, int rounds, const AfterAllocation& then) {
  std::vector<double> ns;
  for (int round = 0; round < rounds; ++round) {
    const int64_t start = SteadyNowNs();
    ReplayOnce(trace, subject, then);
    ns.push_back(static_cast<double>(SteadyNowNs() - start));
  }
  std::nth_element(ns.begin(), ns.begin() + rounds / 2, ns.end());
  return ns[rounds / 2] / static_cast<double>(trace.events.size());
}

Result Measure(const Trace& trace, Subject& subject, int rounds) {
  Result result;
  for (int round = 0; round < 3; ++round) {
    ReplayOnce(trace, subject, [&](void* data, size_t bytes) {
      Touch(data, bytes);
      result.held_bytes = std::max(result.held_bytes, subject.held());
    });
  }
  result.ns_per_op = Time(trace, subject, rounds, [](void*, size_t) {});
  result.written_ns_per_op = Time(trace, subject, rounds, Touch);
  return result;
}

// What `body` writes to a file, in a process of its own, so that nobody sees what it has left.
void InChild(const std::function<void(std::FILE*)>& body,
             const std::function<void(std::FILE*)>& read) {
  std::FILE* const file = std::tmpfile();
  const pid_t child = file != nullptr ? fork() : -1;
  if (child == 0) {
    body(file);
    std::fflush(file);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) std::exit(1);
  std::rewind(file);
  read(file);
  std::fclose(file);
}

Trace RecordInChild(const ModelFlags& model, const FeedFlags& feeds) {
  Trace trace;
  InChild(
      [&](std::FILE* file) {
        const Trace recorded = Record(model, feeds);
        std::fwrite(recorded.events.data(), sizeof(Event), recorded.events.size(), file);
      },
      [&](std::FILE* file) {
        for (Event event; std::fread(&event, sizeof(event), 1, file) == 1;) {
          trace.events.push_back(event);
        }
      });
  size_t in_use = 0;
  for (const Event& event : trace.events) {
    in_use = event.allocates ? in_use + event.bytes : in_use - event.bytes;
    trace.num_blocks += event.allocates ? 1 : 0;
    trace.peak_bytes = std::max(trace.peak_bytes, in_use);
  }
  return trace;
}

Result MeasureInChild(const Trace& trace, const std::string& name, int rounds) {
  Result result;
  InChild(
      [&](std::FILE* file) {
        const std::unique_ptr<Subject> subject = MakeSubject(name, trace.num_blocks);
        if (subject == nullptr) return;
        const Result measured = Measure(trace, *subject, rounds);
        std::fwrite(&measured, sizeof(measured), 1, file);
      },
      [&](std::FILE* file) {
        [[maybe_unused]] const size_t read = std::fread(&result, sizeof(result), 1, file);
      });
  return result;
}

double Median(std::vector<Result> results, double Result::*field) {
  std::sort(results.begin(), results.end(),
            [field](const Result& a, const Result& b) { return a.*field < b.*field; });
  return results[results.size() / 2].*field;
}

void Compare(const Trace& trace, int turns, int rounds) {
  std::vector<std::pair<std::string, std::vector<Result>>> subjects;
  for (const char* name :
       {"tlsf", "exact", "linear", "power_of_two", "naive", "malloc", "mimalloc"}) {
    subjects.push_back({name, {}});
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (auto& [name, results] : subjects) results.push_back(MeasureInChild(trace, name, rounds));
  }
  std::printf("%zu calls in a run, at most %.2f MiB in use\n\n", trace.events.size(),
              static_cast<double>(trace.peak_bytes) / (1 << 20));
  std::printf("| allocator | ns per call | written | held / in use |\n| --- | --- | --- | --- |\n");
  for (const auto& [name, results] : subjects) {
    if (results[0].ns_per_op == 0) continue;  // not installed
    std::printf("| %s | %.0f | %.0f | %.2f |\n", name.c_str(), Median(results, &Result::ns_per_op),
                Median(results, &Result::written_ns_per_op),
                static_cast<double>(results[0].held_bytes) / static_cast<double>(trace.peak_bytes));
  }
}

int Main(int argc, char** argv) {
  const std::string digits = INTERP_SOURCE_DIR "/tools/digits/";
  ModelFlags model;
  FeedFlags feeds;
  int turns = 5;
  int rounds = 100;
  CLI::App app("compares allocators on the trace of a program");
  app.add_option("program", model.model);
  app.add_option("--params", model.params);
  app.add_option("--feed", feeds.feeds);
  app.add_option("--turns", turns)->check(CLI::Range(1, 1000));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  if (model.model.empty()) {
    model = {.model = digits + "digits.pdmodel",
             .params = digits + "digits.pdiparams",
             .compiled_from = {}};
    feeds.feeds = {digits + "image.npy"};
  }
  Compare(RecordInChild(model, feeds), turns, rounds);
  return 0;
}

}  // namespace
}  // namespace interp

int main(int argc, char** argv) { return interp::Main(argc, argv); }
