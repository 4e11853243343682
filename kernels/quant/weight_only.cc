#include "kernels/quant/weight_only.h"

#include "absl/strings/str_cat.h"

namespace interp {
namespace {

constexpr int64_t kTileRows = 64;

// The place of a row among those that one instruction of a GPU multiplies: each thread reads pairs
// of rows that are 8 apart.
int64_t PermutedRow(int32_t bits, int64_t row) {
  const int64_t block = 8 * 16 / bits;
  const int64_t in_register = 32 / bits;
  const int64_t in_block = row % block;
  const int64_t pair = in_block % 8 / 2;
  return row - in_block + in_register * pair + 2 * (in_block / 8) + in_block % 2;
}

// Weights of one register of 32 bits: those of even places first, of 16 bits each.
int64_t InRegister(int32_t bits, int64_t position) {
  const int64_t count = 32 / bits;
  const int64_t at = position % count;
  if (bits == 4) return position - at + at / 2 + (at % 2 == 1 ? count / 2 : 0);
  return position - at + (at == 1 ? 2 : at == 2 ? 1 : at);
}

}  // namespace

int64_t WeightOrder::Position(int64_t row, int64_t column) const {
  if (form == Form::kTransposed) return column * rows + row;
  if (form == Form::kRows) return InRegister(bits, row * columns + column);
  const int64_t interleaved = 128 * 8 / bits / kTileRows;  // columns of a tile
  const int64_t at = PermutedRow(bits, row);
  const int64_t in_tile = at % kTileRows;
  return InRegister(bits, column / interleaved * interleaved * rows + interleaved * (at - in_tile) +
                              kTileRows * (column % interleaved) + in_tile);
}

int32_t WeightOrder::Read(const int8_t* weights, int64_t row, int64_t column) const {
  const int64_t at = Position(row, column);
  if (form == Form::kTransposed) return weights[at];
  if (bits == 8) return static_cast<uint8_t>(weights[at]) - 128;
  return (static_cast<uint8_t>(weights[at / 2]) >> (at % 2 * 4) & 15) - 8;
}

void WeightOrder::Write(int32_t value, int64_t row, int64_t column, int8_t* weights) const {
  const int64_t at = Position(row, column);
  if (form == Form::kTransposed) {
    weights[at] = static_cast<int8_t>(value);
  } else if (bits == 8) {
    weights[at] = static_cast<int8_t>(value + 128);
  } else {
    weights[at / 2] = static_cast<int8_t>(weights[at / 2] | (value + 8) << (at % 2 * 4));
  }
}

WeightOrder ReadWeightOrder(AttrReader& reader, absl::string_view algo) {
  constexpr int32_t kDefaultArch = 80;
  WeightOrder order;
  const int32_t arch = reader.Int("arch", kDefaultArch);
  if (arch < 70 || arch > 100) {
    reader.Fail(absl::StrCat("attribute 'arch' is ", arch, ", expected 70 to 100"));
  }
  if (arch == 70) order.form = WeightOrder::Form::kRows;
  if (algo == "weight_only_int4") {
    order.bits = 4;
  } else if (algo == "llm.int8") {
    order.form = WeightOrder::Form::kTransposed;
  } else if (algo != "weight_only_int8") {
    reader.Fail(absl::StrCat("attribute 'algo' is \"", algo,
                             "\", expected weight_only_int8, weight_only_int4 or llm.int8"));
  }
  return order;
}

absl::Status CheckTiles(const WeightOrder& order) {
  if (order.rows % kTileRows == 0 && order.columns % 16 == 0) return absl::OkStatus();
  return InvalidArgument("weights of ", order.rows, " rows and ", order.columns,
                         " columns, expected multiples of ", kTileRows, " and 16");
}

absl::StatusOr<WeightOrder> OrderOfWeights(WeightOrder order, const Tensor& weights) {
  if (weights.dtype != DType::kInt8 || weights.shape.rank() != 2) {
    return InvalidArgument("weights are ", DescribeType(weights), ", expected a matrix of int8");
  }
  order.rows = weights.shape[1];
  order.columns = weights.shape[0] * (8 / order.bits);
  INTERP_RETURN_IF_ERROR(CheckTiles(order));
  return order;
}

}  // namespace interp
