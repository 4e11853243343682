// The operands of scaled_dot_product_attention (see its file): their attributes, their shapes and
// how they lie in memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/attr_reader.h"
#include "core/op_context.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn::scaled_dot_product_attention {

inline constexpr int kQ = 0;
inline constexpr int kK = 1;
inline constexpr int kV = 2;
inline constexpr int kFactor = 3;
inline constexpr int kBias = 4;
inline constexpr int kOut = 0;

struct ViewAttrs {
  std::vector<int64_t> axes;   // empty: all of the input, in order
  std::vector<int64_t> slice;  // axis and index; empty: none
};

struct Attrs {
  std::array<ViewAttrs, 3> views = {};  // of Q, K and V
  bool trans_k = false;
  bool trans_v = false;
  double scale = 1;
  std::vector<int64_t> out_axes = {};  // empty: in order
  std::vector<int64_t> turning = {};   // positions of Bias; so is the next
  std::vector<int64_t> subtracted = {};
};

Attrs ReadAttrs(AttrReader& reader);

// A tensor as it is read: dims and the elements from one index of each to the next.
struct View {
  Shape dims;
  Strides strides = {};
  int64_t offset = 0;
};

// An op with its shapes. What is repeated along a dim has a stride of 0 there.
struct Problem {
  View q, k, v;
  Shape batch;               // of all inputs
  Shape scores;              // batch dims, queries and keys
  int score_rank = 0;        // of Q and K alone: batch dims of others stand before theirs
  Shape out;                 // in the order of Out
  Strides out_strides = {};  // of batch dims, queries and values
  int64_t queries() const { return scores.back(2); }
  int64_t keys() const { return scores.back(); }
  int64_t width() const { return q.dims.back(); }
  int64_t values() const { return v.dims.back(); }
};

// Steps of the view along each of the batch dims; 0 where it is repeated.
Strides BatchSteps(const View& view, const Shape& batch);

// What changes the scores: an argument of Factor or Bias.
struct Term {
  int slot = kFactor;
  int64_t position = 0;  // of the slot
  const Tensor* tensor = nullptr;
  bool turns = false;
  bool subtracted = false;
};

// In the order in which they change the scores.
absl::InlinedVector<Term, 3> TermsOf(const OpContext& ctx);

// The dims of a term by those of the scores; of one that takes turns, the period stands for the
// dim that it takes turns along. Empty where it does not fit.
Shape TermDims(const Term& term, const Problem& p);

// Error: InvalidArgument where operands do not fit each other.
absl::StatusOr<Problem> Resolve(const OpContext& ctx);

}  // namespace interp::nn::scaled_dot_product_attention
