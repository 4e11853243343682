#include "kernels/fft/transform.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/catching.h"
#include "kernels/fft/lanes.h"
#include "kernels/fft/line_groups.h"
#include "kernels/fft/plan.h"
#include "kernels/util/parallel_for.h"

namespace interp::fft {
namespace {

// Longer lines are transformed one by one: a group of them would leave the caches.
constexpr size_t kLargestGroupBytes = size_t{4} << 20;

// Elements that are worth a thread.
constexpr int64_t kTransformGrain = kElementwiseGrain / 4;

template <typename T>
struct RealPlan {
  int64_t length = 0;
  std::unique_ptr<const Plan<T>> plan;  // of half the length where that is even
  std::vector<Pair<T>> roots;           // exp(-2 pi i k / length), up to a quarter turn
};

// What an instruction has made, by length. An instruction has few, unless its lengths change.
struct Plans : KernelState {
  static constexpr size_t kKept = 8;
  template <typename T>
  struct Of {
    std::vector<std::unique_ptr<const Plan<T>>> lines;
    std::vector<RealPlan<T>> reals;
  };
  Of<float> floats;
  Of<double> doubles;
  template <typename T>
  Of<T>& of() {
    if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return doubles;
    }
  }
};

template <typename T>
absl::StatusOr<const Plan<T>*> PlanOf(const KernelContext& ctx, int64_t length) {
  auto& plans = ctx.state<Plans>().of<T>().lines;
  for (const auto& plan : plans) {
    if (plan->length == length) return plan.get();
  }
  return Catching([&]() -> absl::StatusOr<const Plan<T>*> {
    if (plans.size() == Plans::kKept) plans.clear();
    plans.push_back(MakePlan<T>(length));
    return plans.back().get();
  });
}

template <typename T>
absl::StatusOr<const RealPlan<T>*> RealPlanOf(const KernelContext& ctx, int64_t length) {
  auto& plans = ctx.state<Plans>().of<T>().reals;
  for (const auto& plan : plans) {
    if (plan.length == length) return &plan;
  }
  return Catching([&]() -> absl::StatusOr<const RealPlan<T>*> {
    if (plans.size() == Plans::kKept) plans.clear();
    const bool odd = length % 2 == 1;
    RealPlan<T> made = {
        .length = length, .plan = MakePlan<T>(odd ? length : length / 2), .roots = {}};
    if (!odd) made.roots = Roots<T>(length, length / 4 + 1);
    plans.push_back(std::move(made));
    return &plans.back();
  });
}

// Calls body(V(), first, x, other) for groups of lines from `first` on; x and other hold what
// `plan` takes and `length` + 1 elements.
template <typename T, typename Body>
absl::Status ForGroups(const KernelContext& ctx, const Plan<T>& plan, int64_t length, int64_t count,
                       const Body& body) {
  using V = typename VectorOf<T>::type;
  const int64_t rows = std::max(plan.buffer_length, length) + 1;
  const bool wide = count > 1 && rows * sizeof(Pair<V>) <= kLargestGroupBytes;
  const int64_t lanes = wide ? ElementOf<V>::kLanes : 1;
  const int64_t groups = (count + lanes - 1) / lanes;
  const int tasks = static_cast<int>(std::clamp<int64_t>(
      std::min(groups, count * length / kTransformGrain), 1, ctx.num_threads()));
  const size_t buffer_bytes = rows * lanes * sizeof(Pair<T>);
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(2 * tasks * buffer_bytes));
  char* const buffers = work.data<char>();
  ParallelFor(tasks, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      char* const x = buffers + 2 * task * buffer_bytes;
      char* const other = x + buffer_bytes;
      const int64_t last = groups * (task + 1) / tasks;
      for (int64_t group = groups * task / tasks; group < last; ++group) {
        const int64_t first = group * lanes;
        if (wide && first + 1 < count) {
          body(V(), first, reinterpret_cast<Pair<V>*>(x), reinterpret_cast<Pair<V>*>(other));
        } else {
          body(T(), first, reinterpret_cast<Pair<T>*>(x), reinterpret_cast<Pair<T>*>(other));
        }
      }
    }
  });
  return absl::OkStatus();
}

template <typename V>
Pair<V> Turned(bool turn, const Pair<V>& x) {
  return turn ? Swapped(x) : x;
}
template <typename V, typename T>
Pair<V> Scaled(const Pair<V>& x, T factor) {
  return {x.re * factor, x.im * factor};
}

// Backwards is forwards with real and imaginary parts swapped before and after.
template <typename T>
absl::Status TransformLines(const KernelContext& ctx, int64_t length, const LineStarts& lines,
                            const LineOptions& options, const std::complex<T>* in,
                            std::complex<T>* out) {
  if (lines.count() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const Plan<T>* const plan, PlanOf<T>(ctx, length));
  const bool turn = !options.forward;
  const T factor = static_cast<T>(options.factor);
  return ForGroups(
      ctx, *plan, length, lines.count(),
      [&]<typename V>(V, int64_t first, Pair<V>* x, Pair<V>* other) {
        const LineGroup<ElementOf<V>::kLanes> group(lines, first);
        const auto from = group.Load(in, length, reinterpret_cast<std::complex<T>*>(other));
        for (int64_t i = 0; i < length; ++i) x[i] = Turned(turn, LoadPairs<V>(from[i]));
        const Pair<V>* const result = RunPlan(*plan, x, other);
        auto* const block = reinterpret_cast<std::complex<T>*>(result == x ? other : x);
        const auto to = group.Target(out, block);
        for (int64_t i = 0; i < length; ++i) {
          StorePairs(Scaled(Turned(turn, result[i]), factor), to[i]);
        }
        group.Store(block, length, out);
      });
}

// Calls write(k, X) for the first half of the spectra of the real rows. Even and odd elements of a
// row are the real and imaginary parts of one of half the length, from whose spectrum Z
//   X[k] = E + exp(-2 pi i k / n) O, 2 E = Z[k] + conj(Z[n/2 - k]), 2 i O = Z[k] - conj(Z[n/2 - k])
// and X[n/2 - k] is the conjugate of that with a minus.
template <typename T, typename V, typename Rows, typename Write>
void RealSpectrum(const RealPlan<T>& real, const Rows& from, Pair<V>* x, Pair<V>* other,
                  const Write& write) {
  const int64_t n = real.length;
  const auto row = [&](int64_t i) { return LoadLanes<V>(from[i]); };
  if (n % 2 == 1) {
    for (int64_t i = 0; i < n; ++i) x[i] = {row(i), V{}};
    const Pair<V>* const result = RunPlan(*real.plan, x, other);
    const auto to = write(result);
    for (int64_t k = 0; k < HalfLength(n); ++k) to(k, result[k]);
    return;
  }
  const int64_t half = n / 2;
  for (int64_t i = 0; i < half; ++i) x[i] = {row(2 * i), row(2 * i + 1)};
  const Pair<V>* const result = RunPlan(*real.plan, x, other);
  const auto to = write(result);
  for (int64_t k = 0; k <= half / 2; ++k) {
    const Pair<V> a = Scaled(result[k], T{0.5});
    const Pair<V> b = Scaled(Conjugate(result[k == 0 ? 0 : half - k]), T{0.5});
    const Pair<V> even = a + b;
    const Pair<V> odd = TimesMinusI(a - b) * real.roots[k];
    to(k, even + odd);
    to(half - k, Conjugate(even - odd));
  }
}

// The reverse: rows out of the half spectrum that read(k) gives, by a transform backwards. Returns
// its result, whose imaginary parts are the even elements where n is even, and all elsewhere.
template <typename T, typename V, typename Read>
const Pair<V>* RealRows(const RealPlan<T>& real, Pair<V>* x, Pair<V>* other, const Read& read) {
  const int64_t n = real.length;
  if (n % 2 == 1) {
    x[0] = {V{}, read(0).re};
    for (int64_t k = 1; k < HalfLength(n); ++k) {
      const Pair<V> value = read(k);
      x[k] = Swapped(value);
      x[n - k] = Swapped(Conjugate(value));
    }
    return RunPlan(*real.plan, x, other);
  }
  const int64_t half = n / 2;
  for (int64_t k = 0; k <= half / 2; ++k) {
    const Pair<V> a = k == 0 ? Pair<V>{read(0).re, V{}} : read(k);
    const Pair<V> b = k == 0 ? Pair<V>{read(half).re, V{}} : Conjugate(read(half - k));
    const Pair<V> even = a + b;
    const Pair<V> odd = (a - b) * Conjugate(real.roots[k]);
    x[k] = Swapped(even - TimesMinusI(odd));
    if (k > 0) x[half - k] = Swapped(Conjugate(even) - TimesMinusI(Conjugate(odd)));
  }
  return RunPlan(*real.plan, x, other);
}

}  // namespace

template <typename T>
absl::Status TransformFirst(const KernelContext& ctx, const Shape& shape,
                            absl::Span<const int> axes, const LineOptions& options, int axis,
                            int64_t length, std::complex<T>* data) {
  LineOptions left = options;
  for (const int along : axes) {
    if (shape[along] == 1 && left.factor == 1) continue;
    INTERP_RETURN_IF_ERROR(TransformLines<T>(
        ctx, shape[along], LineStarts(shape, along, axis, length), left, data, data));
    left.factor = 1;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Transform(const KernelContext& ctx, const Shape& shape, absl::Span<const int> axes,
                       const LineOptions& options, const std::complex<T>* in,
                       std::complex<T>* out) {
  INTERP_RETURN_IF_ERROR(
      TransformLines<T>(ctx, shape[axes[0]], LineStarts(shape, axes[0]), options, in, out));
  return TransformFirst<T>(ctx, shape, axes.subspan(1), {.forward = options.forward}, axes[0],
                           shape[axes[0]], out);
}

template <typename T>
absl::Status TransformReal(const KernelContext& ctx, const Shape& shape, int axis,
                           const Shape& out_shape, bool half, const LineOptions& options,
                           const T* in, std::complex<T>* out) {
  const int64_t length = shape[axis];
  const LineStarts lines(shape, axis);
  const LineStarts out_lines(out_shape, axis);
  if (lines.count() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const RealPlan<T>* const real, RealPlanOf<T>(ctx, length));
  const T factor = static_cast<T>(options.factor);
  const T twin_factor = static_cast<T>(options.factor * options.twin_factor);
  return ForGroups(ctx, *real->plan, length, lines.count(),
                   [&]<typename V>(V, int64_t first, Pair<V>* x, Pair<V>* other) {
                     const LineGroup<ElementOf<V>::kLanes> group(lines, first);
                     const LineGroup<ElementOf<V>::kLanes> out_group(out_lines, first);
                     const auto from = group.Load(in, length, reinterpret_cast<T*>(other));
                     std::complex<T>* block = nullptr;
                     RealSpectrum(*real, from, x, other, [&](const Pair<V>* result) {
                       block = reinterpret_cast<std::complex<T>*>(result == x ? other : x);
                       const auto to = out_group.Target(out, block);
                       return [&, to](int64_t k, const Pair<V>& value) {
                         const bool twin = k > 0 && 2 * k != length;
                         const Pair<V> scaled = Scaled(value, twin ? twin_factor : factor);
                         StorePairs(options.forward ? scaled : Conjugate(scaled), to[k]);
                         if (!half && twin) {
                           StorePairs(options.forward ? Conjugate(scaled) : scaled, to[length - k]);
                         }
                       };
                     });
                     out_group.Store(block, half ? HalfLength(length) : length, out);
                   });
}

template <typename T>
absl::Status TransformToReal(const KernelContext& ctx, const Shape& in_shape,
                             const Shape& out_shape, int axis, const LineOptions& options,
                             const std::complex<T>* in, T* out) {
  const int64_t length = out_shape[axis];
  const int64_t given = std::min(in_shape[axis], HalfLength(length));
  const LineStarts in_lines(in_shape, axis);
  const LineStarts lines(out_shape, axis);
  if (lines.count() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const RealPlan<T>* const real, RealPlanOf<T>(ctx, length));
  const T factor = static_cast<T>(options.factor);
  const T twin_factor = static_cast<T>(options.twin_factor);
  return ForGroups(
      ctx, *real->plan, length, lines.count(),
      [&]<typename V>(V, int64_t first, Pair<V>* x, Pair<V>* other) {
        const LineGroup<ElementOf<V>::kLanes> in_group(in_lines, first);
        const LineGroup<ElementOf<V>::kLanes> group(lines, first);
        const auto from = in_group.Load(in, given, reinterpret_cast<std::complex<T>*>(other));
        const Pair<V>* const result = RealRows<T, V>(*real, x, other, [&](int64_t k) -> Pair<V> {
          if (k >= given) return {V{}, V{}};
          const Pair<V> value = LoadPairs<V>(from[k]);
          const Pair<V> scaled = k > 0 && 2 * k != length ? Scaled(value, twin_factor) : value;
          return options.forward ? Conjugate(scaled) : scaled;
        });
        T* const block = reinterpret_cast<T*>(result == x ? other : x);
        const auto to = group.Target(out, block);
        for (int64_t i = 0; i < length; ++i) {
          const Pair<V>& value = length % 2 == 1 ? result[i] : result[i / 2];
          const bool odd = length % 2 == 0 && i % 2 == 1;
          StoreLanes((odd ? value.re : value.im) * factor, to[i]);
        }
        group.Store(block, length, out);
      });
}

template <typename T>
void CompleteConjugates(int num_threads, const Shape& shape, absl::Span<const int> axes,
                        std::complex<T>* data) {
  const int last = axes.back();
  const int64_t length = shape[last];
  const int64_t lines = LineStarts(shape, last).count();
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / length);
  ParallelFor(num_threads, lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = 0, mirrored = 0, step = 1;
      int64_t stride = 1, rest = line;
      for (int d = shape.rank() - 1; d >= 0; stride *= shape[d--]) {
        if (d == last) {
          step = stride;
          continue;
        }
        const int64_t i = rest % shape[d];
        rest /= shape[d];
        const bool turns = i > 0 && std::find(axes.begin(), axes.end(), d) != axes.end();
        start += i * stride;
        mirrored += (turns ? shape[d] - i : i) * stride;
      }
      for (int64_t k = HalfLength(length); k < length; ++k) {
        data[start + k * step] = std::conj(data[mirrored + (length - k) * step]);
      }
    }
  });
}

#define INTERP_FFT_FOR(T)                                                                          \
  template absl::Status Transform(const KernelContext&, const Shape&, absl::Span<const int>,       \
                                  const LineOptions&, const std::complex<T>*, std::complex<T>*);   \
  template absl::Status TransformFirst(const KernelContext&, const Shape&, absl::Span<const int>,  \
                                       const LineOptions&, int, int64_t, std::complex<T>*);        \
  template absl::Status TransformReal(const KernelContext&, const Shape&, int, const Shape&, bool, \
                                      const LineOptions&, const T*, std::complex<T>*);             \
  template absl::Status TransformToReal(const KernelContext&, const Shape&, const Shape&, int,     \
                                        const LineOptions&, const std::complex<T>*, T*);           \
  template void CompleteConjugates(int, const Shape&, absl::Span<const int>, std::complex<T>*);
INTERP_FFT_FOR(float)
INTERP_FFT_FOR(double)
#undef INTERP_FFT_FOR

}  // namespace interp::fft
