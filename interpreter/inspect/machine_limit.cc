#include "interpreter/inspect/machine_limit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/substitute.h"
#include "core/base/catching.h"
#include "core/machine/usable_cpus.h"
#include "core/program_parse.h"
#include "core/scope.h"
#include "core/storage/aligned_memory.h"
#include "interpreter/interpreter_core.h"

namespace interp {
namespace {

// Of the matrices: large enough for the full rate, small enough for the L2 cache of a core.
constexpr int64_t kSide = 512;
constexpr int kProducts = 20;
// Sizes of a machine's caches, roughly: between them the rate changes.
constexpr std::array<int64_t, 6> kFootprints = {32 << 10, 128 << 10, 512 << 10,
                                                2 << 20,  8 << 20,   64 << 20};
constexpr int64_t kCopiedBytes = 16 << 20;  // by each thread in each measurement, at least
constexpr int kCopies = 10;

template <typename Body>
double NsOf(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

absl::StatusOr<Tensor> Zeros(const Shape& shape, DType dtype) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.dtype = dtype;
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  std::memset(tensor.mutable_raw_data(), 0, tensor.size_bytes());
  return tensor;
}

// A program of one product by a constant matrix.
std::string ProductProgram(DType dtype) {
  constexpr absl::string_view kText = R"(block 0
  var x $0[$1,$1]
  var y $0[$1,$1] persistable
  var scale float32[1] persistable
  var out $2[$1,$1]
  $3
)";
  return dtype == DType::kInt8
             ? absl::Substitute(kText, Name(dtype), kSide, "float32",
                                "int8_fc(Input=x, W=y, InputScale=scale) -> (Out=out)")
             : absl::Substitute(kText, Name(dtype), kSide, Name(dtype),
                                "matmul_v2(X=x, Y=y) -> (Out=out)");
}

// Operations per nanosecond of the fastest of some products.
absl::StatusOr<double> RateOfProducts(int num_threads, DType dtype) {
  INTERP_ASSIGN_OR_RETURN(Program program, ParseProgram(ProductProgram(dtype)));
  auto scope = std::make_shared<Scope>();
  INTERP_ASSIGN_OR_RETURN(scope->FindOrCreate("y")->tensor, Zeros({kSide, kSide}, dtype));
  scope->FindOrCreate("scale")->tensor = Tensor::Of<float>({1}, {1});
  INTERP_ASSIGN_OR_RETURN(const Tensor x, Zeros({kSide, kSide}, dtype));
  CoreOptions options;
  options.scheduler = SchedulerKind::kTrace;
  options.num_threads = num_threads;
  INTERP_ASSIGN_OR_RETURN(
      const std::unique_ptr<InterpreterCore> core,
      InterpreterCore::Create(std::move(program), {"x"}, {"out"}, std::move(scope), options));
  double least_ns = 0;
  for (int i = 0; i < kProducts; ++i) {
    absl::Status status;
    const double ns = NsOf([&] { status = core->Run({x}).status(); });
    INTERP_RETURN_IF_ERROR(status);
    if (i == 0 || ns < least_ns) least_ns = ns;
  }
  return 2.0 * kSide * kSide * kSide / least_ns;
}

// Has threads do body(thread) side by side, the calling one as number 0, and returns the
// nanoseconds from their common start to the end of the last. May throw where the system gives no
// thread.
template <typename Body>
double NsTogether(int num_threads, const Body& body) {
  std::atomic<int> waiting = 0;
  std::atomic<int> done = 0;
  std::atomic<bool> started = false;
  std::vector<std::jthread> others;
  others.reserve(static_cast<size_t>(num_threads));
  // Before the threads are joined, also where one of them is missing.
  const absl::Cleanup start = [&] { started = true; };
  for (int thread = 1; thread < num_threads; ++thread) {
    others.emplace_back([&, thread] {
      ++waiting;
      while (!started) std::this_thread::yield();
      body(thread);
      ++done;
    });
  }
  while (waiting < num_threads - 1) std::this_thread::yield();
  return NsOf([&] {
    started = true;
    body(0);
    while (done < num_threads - 1) std::this_thread::yield();
  });
}

// Copies one half of some memory to the other, again and again.
void CopyHalves(char* from, int64_t half, int64_t repeats) {
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    std::memcpy(from + half, from, static_cast<size_t>(half));
    asm volatile("" : : "r"(from) : "memory");  // no copy is left out
  }
}

// Bytes per nanosecond of copies that together take `bytes`, of which each thread has a part; 0
// without memory. May throw, see NsTogether.
double RateOfCopies(int num_threads, int64_t bytes) {
  const std::unique_ptr<void, decltype(&std::free)> memory(
      AllocateAligned(static_cast<size_t>(bytes)), &std::free);
  if (memory == nullptr) return 0;
  std::memset(memory.get(), 0, static_cast<size_t>(bytes));
  const int64_t half = bytes / num_threads / 2;
  if (half == 0) return 0;
  const int64_t repeats = std::max<int64_t>(1, kCopiedBytes / (half * 2));
  double least_ns = 0;
  for (int i = 0; i < kCopies; ++i) {
    const double ns = NsTogether(num_threads, [&](int thread) {
      CopyHalves(static_cast<char*>(memory.get()) + thread * half * 2, half, repeats);
    });
    if (i == 0 || ns < least_ns) least_ns = ns;
  }
  return static_cast<double>(half * 2 * num_threads * repeats) / least_ns;
}

double FlopsPerNs(const MachineLimit& limit, DType dtype) {
  for (const MachineLimit::Products& products : limit.products) {
    if (products.dtype == dtype) return products.flops_per_ns;
  }
  return 0;
}

double BytesPerNs(const MachineLimit& limit, double bytes) {
  for (const MachineLimit::Copies& copies : limit.copies) {
    if (bytes <= static_cast<double>(copies.bytes)) return copies.bytes_per_ns;
  }
  return limit.copies.empty() ? 0 : limit.copies.back().bytes_per_ns;
}

}  // namespace

MachineLimit MeasureMachineLimit(int num_threads, absl::Span<const DType> dtypes) {
  MachineLimit limit;
  limit.num_threads = std::min(num_threads, UsableCpus());
  for (const DType dtype : dtypes) {
    const absl::StatusOr<double> rate =
        Catching([&] { return RateOfProducts(limit.num_threads, dtype); });
    if (rate.ok()) limit.products.push_back({dtype, *rate});
  }
  for (const int64_t bytes : kFootprints) {
    const absl::StatusOr<double> rate = Catching(
        [&]() -> absl::StatusOr<double> { return RateOfCopies(limit.num_threads, bytes); });
    if (rate.ok() && *rate > 0) limit.copies.push_back({bytes, *rate});
  }
  return limit;
}

double LeastNs(const MachineLimit& limit, DType dtype, double flops, double bytes) {
  double ns = 0;
  if (flops > 0) {
    const double rate = FlopsPerNs(limit, dtype);
    if (rate <= 0) return 0;
    ns = flops / rate;
  }
  const double bytes_per_ns = BytesPerNs(limit, bytes);
  if (bytes_per_ns > 0) ns = std::max(ns, bytes / bytes_per_ns);
  return ns;
}

}  // namespace interp
