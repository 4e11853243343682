// Forward and backward sums run over the label with blanks around each of its tags, in logarithms:
// a block for each sequence, a thread for each position.
#include <algorithm>
#include <limits>

#include "kernels/cuda/ctc.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/integers.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sequences.h"

namespace interp::cuda {
namespace {

// What stands for log 0. Sums with it stay finite.
constexpr float kLogZero = -1e30F;

enum class Fit : int32_t { kTooFewRows, kFits, kNoTag };

__device__ int64_t LengthAt(const void* lengths, DType dtype, int64_t i, int64_t most) {
  const int64_t length = IntegerAt(lengths, dtype, i);
  return length < 0 ? 0 : std::min(length, most);
}

__device__ int64_t RowsOf(const CtcRows& rows, int64_t i) {
  if (rows.offsets != nullptr) return rows.offsets[i + 1] - rows.offsets[i];
  return LengthAt(rows.lengths, rows.length_dtype, i, rows.steps);
}
// Where row `t` of sequence `i` begins.
__device__ int64_t RowStart(const CtcRows& rows, int64_t i, int64_t t) {
  const int64_t row = rows.offsets != nullptr ? rows.offsets[i] + t : t * rows.batch + i;
  return row * rows.tags;
}

// The label of a sequence with blanks around each tag.
struct Positions {
  const void* labels;
  DType dtype;
  int64_t first;
  int64_t num_labels;
  int64_t blank;

  __device__ Positions(const CtcArguments& args, int64_t i)
      : labels(args.labels.data), dtype(args.labels.dtype), blank(args.blank) {
    const CtcLabels& all = args.labels;
    const bool joined = all.offsets != nullptr;
    first = joined ? all.offsets[i] : i * all.width;
    num_labels =
        joined ? all.offsets[i + 1] - first : LengthAt(all.lengths, all.length_dtype, i, all.width);
  }

  __device__ int64_t count() const { return 2 * num_labels + 1; }
  __device__ int64_t TagAt(int64_t s) const {
    return s % 2 == 0 ? blank : IntegerAt(labels, dtype, first + s / 2);
  }
  // Whether position s may follow position s - 2: it is no blank and another tag.
  __device__ bool MaySkipTo(int64_t s) const {
    return s % 2 == 1 && s > 2 && s < count() && TagAt(s) != TagAt(s - 2);
  }
};

// Whether there are rows enough: one for each tag and for a blank between equal ones.
__global__ void __launch_bounds__(kBlockThreads) FindFits(const CtcArguments args, Fit* fits) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < args.rows.batch;
       i += int64_t{gridDim.x} * blockDim.x) {
    const Positions positions(args, i);
    const int64_t rows = RowsOf(args.rows, i);
    int64_t least = positions.num_labels;
    bool all_tags = true;
    for (int64_t s = 1; s < positions.count(); s += 2) {
      const int64_t tag = positions.TagAt(s);
      all_tags = all_tags && tag >= 0 && tag < args.rows.tags;
      least += s > 2 && tag == positions.TagAt(s - 2) ? 1 : 0;
    }
    const Fit fit = rows > 0 && least <= rows ? Fit::kFits : Fit::kTooFewRows;
    fits[i] = all_tags ? fit : Fit::kNoTag;
  }
}

// grad = softmax(logits), and the logarithms of its divisors; 0 where nothing is aligned.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SoftmaxOfRows(const CtcArguments args, const Fit* fits, T* log_sums) {
  const CtcRows& rows = args.rows;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; at < rows.steps * rows.batch;
       at += int64_t{gridDim.x} * blockDim.y) {
    const int64_t i = at % rows.batch;
    const int64_t t = at / rows.batch;
    T* const grad = static_cast<T*>(args.grad) + at * rows.tags;
    if (fits[i] != Fit::kFits || t >= RowsOf(rows, i)) {
      const T nothing = fits[i] == Fit::kNoTag ? std::numeric_limits<T>::quiet_NaN() : T{0};
      for (int64_t k = threadIdx.x; k < rows.tags; k += blockDim.x) grad[k] = nothing;
      continue;
    }
    const T* const x = static_cast<const T*>(args.logits) + RowStart(rows, i, t);
    T most = -std::numeric_limits<T>::infinity();
    for (int64_t k = threadIdx.x; k < rows.tags; k += blockDim.x) most = x[k] > most ? x[k] : most;
    most = MaxRow(most);
    T sum = 0;
    for (int64_t k = threadIdx.x; k < rows.tags; k += blockDim.x) sum += exp(x[k] - most);
    sum = SumRow(sum);
    for (int64_t k = threadIdx.x; k < rows.tags; k += blockDim.x) grad[k] = exp(x[k] - most) / sum;
    if (threadIdx.x == 0) log_sums[at] = most + log(sum);
  }
}

// Temporary memory of all sequences, as large for each.
template <typename T>
struct Scratch {
  T* log_sums;     // [steps, batch]
  T* alpha;        // [steps, positions]
  T* beta;         // [positions]
  T* next;         // [positions]: beta and the probability of its row
  T* shares;       // [positions]
  int32_t* first;  // [positions]: the first one of the same tag
};

template <typename T>
__device__ T LogSum3(T x, T y, T z) {
  const T most = std::max(x, std::max(y, z));
  return most + log(exp(x - most) + exp(y - most) + exp(z - most));
}

// One sequence, by all threads of a block. Positions that do not exist have log 0.
template <typename T>
class Aligner {
 public:
  __device__ Aligner(const CtcArguments& args, const Scratch<T>& all, int64_t i)
      : args_(args), i_(i), positions_(args, i), rows_(RowsOf(args.rows, i)), own_(all) {
    const int64_t most = 2 * args.labels.width + 1;
    own_.alpha += i * args.rows.steps * most;
    own_.beta += i * most;
    own_.next += i * most;
    own_.shares += i * most;
    own_.first += i * most;
    count_ = positions_.count();
  }

  // The loss, of all threads; takes what is aligned off the gradient.
  __device__ T Run() {
    FindFirst();
    Forward();
    const T* const last = own_.alpha + (rows_ - 1) * count_;
    const T before = count_ > 1 ? last[count_ - 2] : T{kLogZero};
    const T most = std::max(last[count_ - 1], before);
    const T likelihood = most + log(exp(last[count_ - 1] - most) + exp(before - most));
    if (likelihood < T{kLogZero} / 2) return std::numeric_limits<T>::infinity();
    Backward(likelihood);
    return -likelihood;
  }

 private:
  __device__ T LogProbability(int64_t t, int64_t s) const {
    const T* const x = static_cast<const T*>(args_.logits) + RowStart(args_.rows, i_, t);
    const T value = x[positions_.TagAt(s)] - own_.log_sums[t * args_.rows.batch + i_];
    return std::max(value, T{kLogZero});
  }
  __device__ T At(const T* values, int64_t s) const {
    return s >= 0 && s < count_ ? values[s] : T{kLogZero};
  }

  __device__ void FindFirst() {
    for (int64_t s = threadIdx.x; s < count_; s += blockDim.x) {
      int64_t first = 0;
      while (positions_.TagAt(first) != positions_.TagAt(s)) ++first;
      own_.first[s] = static_cast<int32_t>(first);
    }
  }

  // alpha(t)[s]: log probability of the rows up to t for all that is at position s in row t.
  __device__ void Forward() {
    for (int64_t t = 0; t < rows_; ++t) {
      const T* const before = own_.alpha + (t - 1) * count_;
      for (int64_t s = threadIdx.x; s < count_; s += blockDim.x) {
        T value = s < 2 ? T{0} : T{kLogZero};
        if (t > 0) {
          const T skip = positions_.MaySkipTo(s) ? T{0} : T{kLogZero};
          value = LogSum3(before[s], At(before, s - 1), At(before, s - 2) + skip);
        }
        own_.alpha[t * count_ + s] = value + LogProbability(t, s);
      }
      __syncthreads();
    }
  }

  // beta[s]: log probability of the rows after t for all that is at position s in row t.
  __device__ void Backward(T likelihood) {
    for (int64_t t = rows_ - 1; t >= 0; --t) {
      const bool is_last = t + 1 == rows_;
      for (int64_t s = threadIdx.x; s < count_ && !is_last; s += blockDim.x) {
        own_.next[s] = own_.beta[s] + LogProbability(t + 1, s);
      }
      __syncthreads();  // the shares of the row before have been taken, too
      for (int64_t s = threadIdx.x; s < count_; s += blockDim.x) {
        T value = s >= count_ - 2 ? T{0} : T{kLogZero};
        if (!is_last) {
          const T skip = positions_.MaySkipTo(s + 2) ? T{0} : T{kLogZero};
          value = LogSum3(own_.next[s], At(own_.next, s + 1), At(own_.next, s + 2) + skip);
        }
        own_.beta[s] = value;
        own_.shares[s] = exp(own_.alpha[t * count_ + s] + value - likelihood);
      }
      __syncthreads();
      TakeShares(t);
    }
  }

  // Those of one tag by one thread, in their order.
  __device__ void TakeShares(int64_t t) {
    T* const grad = static_cast<T*>(args_.grad) + (t * args_.rows.batch + i_) * args_.rows.tags;
    for (int64_t s = threadIdx.x; s < count_; s += blockDim.x) {
      if (own_.first[s] != s) continue;
      T value = grad[positions_.TagAt(s)];
      for (int64_t other = s; other < count_; ++other) {
        if (own_.first[other] == s) value -= own_.shares[other];
      }
      grad[positions_.TagAt(s)] = value;
    }
  }

  const CtcArguments& args_;
  const int64_t i_;
  const Positions positions_;
  const int64_t rows_;
  Scratch<T> own_;
  int64_t count_;
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    AlignSequences(const CtcArguments args, const Fit* fits, const Scratch<T> scratch) {
  for (int64_t i = blockIdx.x; i < args.rows.batch; i += gridDim.x) {
    T loss = fits[i] == Fit::kNoTag ? std::numeric_limits<T>::quiet_NaN() : T{0};
    if (fits[i] == Fit::kFits) loss = Aligner<T>(args, scratch, i).Run();
    if (threadIdx.x == 0) static_cast<T*>(args.loss)[i] = loss;
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads) ScaleByLoss(const CtcGradientArguments args) {
  const CtcRows& rows = args.rows;
  for (int64_t e = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; e < args.num_rows * rows.tags;
       e += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = e / rows.tags;
    const bool joined = rows.offsets != nullptr;
    const int64_t i = joined ? SequenceOfRow(rows.offsets, rows.batch, row) : row % rows.batch;
    const int64_t t = joined ? row - rows.offsets[i] : row / rows.batch;
    T factor = static_cast<const T*>(args.loss_grad)[i];
    if (args.norm_by_times) {
      factor /= static_cast<T>(std::max<int64_t>(RowsOf(rows, i), 1));
    }
    static_cast<T*>(args.logits_grad)[e] =
        static_cast<const T*>(args.grad)[(t * rows.batch + i) * rows.tags + e % rows.tags] * factor;
  }
}

absl::Status CheckRows(const CtcRows& rows) {
  if (rows.offsets != nullptr) return absl::OkStatus();
  return CheckIntegers("lengths of sequences", rows.length_dtype);
}

template <typename T>
absl::Status Align(const CtcArguments& args, TakeWorkspace take_workspace, cudaStream_t stream) {
  const CtcRows& rows = args.rows;
  const int64_t positions = 2 * args.labels.width + 1;
  const int64_t alphas = rows.batch * rows.steps * positions;
  const int64_t lines = rows.batch * positions;
  const auto bytes = [](int64_t count, size_t size) { return static_cast<size_t>(count) * size; };
  INTERP_ASSIGN_OR_RETURN(
      const Workspace floats,
      take_workspace(bytes(rows.steps * rows.batch + alphas + 3 * lines, sizeof(T))));
  INTERP_ASSIGN_OR_RETURN(const Workspace first, take_workspace(bytes(lines, sizeof(int32_t))));
  INTERP_ASSIGN_OR_RETURN(const Workspace fits, take_workspace(bytes(rows.batch, sizeof(Fit))));
  T* const log_sums = floats.template data<T>();
  T* const alpha = log_sums + rows.steps * rows.batch;
  T* const beta = alpha + alphas;
  const Scratch<T> scratch = {.log_sums = log_sums,
                              .alpha = alpha,
                              .beta = beta,
                              .next = beta + lines,
                              .shares = beta + 2 * lines,
                              .first = first.data<int32_t>()};
  Fit* const fit = fits.data<Fit>();
  INTERP_RETURN_IF_ERROR(LaunchElements(FindFits, rows.batch, stream, args, fit));
  if (rows.steps > 0) {
    INTERP_RETURN_IF_ERROR(Launch(SoftmaxOfRows<T>, RowBlocks(rows.steps * rows.batch, rows.tags),
                                  RowThreads(rows.tags), /*shared_bytes=*/0, stream, args,
                                  static_cast<const Fit*>(fit), log_sums));
  }
  constexpr int64_t kWarp = 32;
  const int64_t threads = std::min<int64_t>((positions + kWarp - 1) / kWarp * kWarp, kBlockThreads);
  return Launch(AlignSequences<T>, BlocksFor(rows.batch, 1), static_cast<unsigned>(threads),
                /*shared_bytes=*/0, stream, args, static_cast<const Fit*>(fit), scratch);
}

}  // namespace

absl::Status Ctc(DType dtype, const CtcArguments& arguments, TakeWorkspace take_workspace,
                 cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckRows(arguments.rows));
  INTERP_RETURN_IF_ERROR(CheckIntegers("labels", arguments.labels.dtype));
  if (arguments.labels.offsets == nullptr) {
    INTERP_RETURN_IF_ERROR(CheckIntegers("lengths of labels", arguments.labels.length_dtype));
  }
  if (arguments.rows.batch == 0) return absl::OkStatus();
  return WithWideFloats("warpctc", dtype, [&](auto type) {
    return Align<typename decltype(type)::type>(arguments, take_workspace, stream);
  });
}

absl::Status CtcGradient(DType dtype, const CtcGradientArguments& arguments, cudaStream_t stream) {
  INTERP_RETURN_IF_ERROR(CheckRows(arguments.rows));
  return WithWideFloats("the gradient of warpctc", dtype, [&](auto type) {
    return LaunchElements(ScaleByLoss<typename decltype(type)::type>,
                          arguments.num_rows * arguments.rows.tags, stream, arguments);
  });
}

}  // namespace interp::cuda
