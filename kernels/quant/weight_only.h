// Weights of weight_quantize: whole numbers of 8 or 4 bits with one scale for each column, in the
// order that Paddle's products for GPUs read them in.
#pragma once

#include <cstdint>

#include "core/attr_reader.h"
#include "core/op_def.h"

namespace interp {

// Which weight of a matrix of `rows` inputs and `columns` outputs lies where.
struct WeightOrder {
  enum class Form : int8_t {
    kTransposed,  // column after column, signed: llm.int8
    kRows,        // row after row: compute capability 7.0
    kTiles,       // tiles of 64 rows, later GPUs
  };
  Form form = Form::kTiles;
  int32_t bits = 8;
  int64_t rows = 0;
  int64_t columns = 0;

  // The most that the whole numbers are.
  int32_t most() const { return bits == 8 ? 127 : 7; }
  // Where a weight lies, counted in weights.
  int64_t Position(int64_t row, int64_t column) const;
  int32_t Read(const int8_t* weights, int64_t row, int64_t column) const;
  // REQUIRES: the bits of the weight are 0 before.
  void Write(int32_t value, int64_t row, int64_t column, int8_t* weights) const;
};

// Reads the order from attribute `arch`, a compute capability, and `algo` as weight_quantize has
// it: weight_only_int8, weight_only_int4 or llm.int8.
WeightOrder ReadWeightOrder(AttrReader& reader, absl::string_view algo);

// The order of weights, int8[columns, rows], [columns / 2, rows] with 4 bits.
// Errors: another dtype or rank, or a matrix that is not cut into whole tiles.
absl::StatusOr<WeightOrder> OrderOfWeights(WeightOrder order, const Tensor& weights);

// Checks that the matrix is cut into whole tiles, as Paddle does.
absl::Status CheckTiles(const WeightOrder& order);

}  // namespace interp
