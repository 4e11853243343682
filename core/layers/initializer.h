// Initializer: how a parameter gets its first value, as an op of the startup program.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "core/program.h"

namespace interp {

// Paddle's initializers (paddle.nn.initializer). Those named after people compute their limits from
// the parameter's dims: the fan-in is what one output sums up, the fan-out what one input goes to.
struct Initializer {
  enum class Kind {
    kConstant,         // a
    kUniform,          // from a to b
    kNormal,           // mean a, deviation b
    kTruncatedNormal,  // the same within two deviations
    kXavierUniform,    // deviation sqrt(2 / (fan-in + fan-out)), as the next one
    kXavierNormal,
    kKaimingUniform,  // deviation sqrt(2 / fan-in), as the next one
    kKaimingNormal,
  };
  Kind kind = Kind::kXavierUniform;
  float a = 0;
  float b = 0;

  static Initializer Constant(float value) { return {Kind::kConstant, value}; }
  static Initializer Uniform(float low, float high) { return {Kind::kUniform, low, high}; }
  static Initializer Normal(float mean, float deviation) {
    return {Kind::kNormal, mean, deviation};
  }
  static Initializer TruncatedNormal(float mean, float deviation) {
    return {Kind::kTruncatedNormal, mean, deviation};
  }
  static Initializer XavierUniform() { return {Kind::kXavierUniform}; }
  static Initializer XavierNormal() { return {Kind::kXavierNormal}; }
  static Initializer KaimingUniform() { return {Kind::kKaimingUniform}; }
  static Initializer KaimingNormal() { return {Kind::kKaimingNormal}; }
};

// The op that fills variable `out`, with the attributes that Paddle writes. REQUIRES: dims are
// positive.
Op InitializerOp(const Initializer& initializer, VarId out, DType dtype,
                 const std::vector<int64_t>& dims);

}  // namespace interp
