// fused_rotary_position_embedding: turns pairs of elements of a head by angles of their place in
// the sequence. q, k and v are [batch, length, heads, width]. A pair (a, b) becomes
// (a cos - b sin, b cos + a sin). With use_neox_rotary_style it is two neighbors, else elements of
// the first and of the second half. sin and cos have one number for each place and element, in any
// shape of [length, width]; position_ids say which place each element of the sequence has there.
// Without them the angle of elements 2 i and 2 i + 1 is place / 10000^(2 i / width).
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn::rotary {
namespace {

constexpr int kQ = 0;
constexpr int kSin = 3;
constexpr int kCos = 4;
constexpr int kPositions = 5;

struct Attrs {
  bool neighbors = true;
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Bool("use_neox_rotary_style", true)}; }

// InvalidArgument unless sin and cos, called `name`, have rows of `width`, `least` at least.
absl::Status CheckTable(const OpContext& ctx, int slot, absl::string_view name, int64_t width,
                        int64_t least) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() >= 2 && shape.back() == width && shape.numel() >= least * width) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected rows of ",
                         width, " elements, ", least, " or more");
}

absl::Status CheckTables(const OpContext& ctx) {
  const Shape& q = ctx.input(kQ).shape;
  if (ctx.has_input(kSin) != ctx.has_input(kCos)) {
    return InvalidArgument("only one of the inputs 'sin' and 'cos' is there");
  }
  const Tensor* const positions = ctx.optional_input(kPositions);
  if (positions != nullptr &&
      (!(positions->shape == Shape{q[0], q[1]}) || positions->dtype != DType::kInt64)) {
    return InvalidArgument("input 'position_ids' is ", DescribeType(*positions), ", expected int64",
                           ToString(Shape{q[0], q[1]}));
  }
  if (!ctx.has_input(kSin)) return absl::OkStatus();
  const int64_t least = positions == nullptr ? q[1] : 0;
  INTERP_RETURN_IF_ERROR(CheckTable(ctx, kSin, "sin", q[3], least));
  return CheckTable(ctx, kCos, "cos", q[3], least);
}

absl::Status Infer(InferContext& ctx) {
  const Shape& q = ctx.input(kQ).shape;
  for (int slot = kQ; slot < kSin; ++slot) {
    if (!ctx.has_input(slot)) continue;
    const Shape& shape = ctx.input(slot).shape;
    if (shape.rank() != 4 || shape[0] != q[0] || shape[1] != q[1] || shape[3] != q[3] ||
        shape[3] % 2 != 0 || shape[3] == 0) {
      return InvalidArgument("input ", slot, " has shape ", ToString(shape),
                             ", expected [batch,length,heads,width] as of 'q', ", ToString(q),
                             ", with an even width");
    }
    if (ctx.has_output(slot)) ctx.ShareShape(slot, slot);
  }
  for (int slot = kQ; slot < kSin; ++slot) {
    if (ctx.has_output(slot) && !ctx.has_input(slot)) ctx.SetShape(slot, {0});
  }
  return CheckTables(ctx);
}

// The sines and cosines of one place, by element.
template <typename T>
struct Turn {
  std::vector<T> sin;
  std::vector<T> cos;
};

// InvalidArgument for a place beyond the tables.
template <typename T>
absl::StatusOr<Turn<T>> TurnAt(const KernelContext& ctx, int64_t place) {
  const int64_t width = ctx.input(kQ).shape[3];
  Turn<T> turn;
  if (!ctx.has_input(kSin)) {
    for (int64_t i = 0; i < width; ++i) {
      const T power = static_cast<T>(i / 2 * 2) / static_cast<T>(width);
      const T angle = static_cast<T>(place) / std::pow(T{10000}, power);
      turn.sin.push_back(std::sin(angle));
      turn.cos.push_back(std::cos(angle));
    }
    return turn;
  }
  const int64_t rows = std::min(ctx.input(kSin).numel(), ctx.input(kCos).numel()) / width;
  if (place < 0 || place >= rows) {
    return InvalidArgument("'position_ids' has ", place, ", but 'sin' and 'cos' have ", rows,
                           " places");
  }
  const T* const sin = ctx.input(kSin).data<T>() + place * width;
  const T* const cos = ctx.input(kCos).data<T>() + place * width;
  turn.sin.assign(sin, sin + width);
  turn.cos.assign(cos, cos + width);
  return turn;
}

template <typename T>
void TurnHead(const Turn<T>& turn, bool neighbors, const T* x, T* y) {
  const auto width = std::ssize(turn.sin);
  const int64_t step = neighbors ? 2 : 1;
  const int64_t apart = neighbors ? 1 : width / 2;
  for (int64_t pair = 0; pair < width / 2; ++pair) {
    const int64_t a = pair * step;
    const int64_t b = a + apart;
    const T first = x[a];
    const T second = x[b];
    y[a] = first * turn.cos[a] - second * turn.sin[a];
    y[b] = second * turn.cos[b] + first * turn.sin[b];
  }
}

template <typename T>
void TurnPlace(KernelContext& ctx, const Turn<T>& turn, int64_t at) {
  const bool neighbors = ctx.attrs<Attrs>().neighbors;
  for (int slot = kQ; slot < kSin; ++slot) {
    if (!ctx.has_input(slot) || !ctx.has_output(slot)) continue;
    const Shape& shape = ctx.input(slot).shape;
    const int64_t start = at * shape[2] * shape[3];
    const T* const x = ctx.input(slot).data<T>() + start;
    T* const y = ctx.output(slot).mutable_data<T>() + start;
    for (int64_t h = 0; h < shape[2]; ++h) {
      TurnHead(turn, neighbors, x + h * shape[3], y + h * shape[3]);
    }
  }
}

template <typename T>
absl::Status Rotary(KernelContext& ctx) {
  const Shape& q = ctx.input(kQ).shape;
  const Tensor* const positions = ctx.optional_input(kPositions);
  for (int64_t i = 0; i < q[1]; ++i) {
    Turn<T> turn;
    if (positions == nullptr) {
      INTERP_ASSIGN_OR_RETURN(turn, TurnAt<T>(ctx, i));
    }
    for (int64_t b = 0; b < q[0]; ++b) {
      const int64_t at = b * q[1] + i;
      if (positions != nullptr) {
        INTERP_ASSIGN_OR_RETURN(turn, TurnAt<T>(ctx, positions->data<int64_t>()[at]));
      }
      TurnPlace(ctx, turn, at);
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_rotary_position_embedding",
    .inputs = {{"q"},
               {"k", kOptional},
               {"v", kOptional},
               {"sin", kOptional},
               {"cos", kOptional},
               {"position_ids", kOptional | kAnyDType}},
    .outputs = {{"out_q"}, {"out_k", kOptional}, {"out_v", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Rotary<float>}, {DType::kFloat64, Rotary<double>}},
});

}  // namespace
}  // namespace interp::nn::rotary
