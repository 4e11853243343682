// AttrReader: typed access to the attributes of an op, used once per instruction.
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"

namespace interp {

// Reads attributes with defaults. Integer kinds (INT, LONG, BOOLEAN) convert into each other where
// the value fits, as do FLOAT and FLOAT64, integers into floats, and the list kinds alike; anything
// else is an error. Errors are sticky: read everything, then look at status() once.
class AttrReader {
 public:
  // `program` gives arguments their names; null: they have none.
  explicit AttrReader(const Op& op, const Program* program = nullptr)
      : op_(op), program_(program) {}

  bool Has(absl::string_view name) const { return op_.FindAttr(name) != nullptr; }
  bool Bool(absl::string_view name, bool fallback);
  int32_t Int(absl::string_view name, int32_t fallback);
  int64_t Long(absl::string_view name, int64_t fallback);
  float Float(absl::string_view name, float fallback);
  double Double(absl::string_view name, double fallback);
  std::string String(absl::string_view name, absl::string_view fallback);
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback = {});
  std::vector<float> Floats(absl::string_view name, std::vector<float> fallback = {});
  std::vector<double> Doubles(absl::string_view name, std::vector<double> fallback = {});
  std::vector<std::string> Strings(absl::string_view name);
  // A dtype stored as Paddle's VarType number; -1 and absence give `fallback`.
  DType Type(absl::string_view name, DType fallback);

  // The names of the arguments of an input slot, for messages; "" where they are not known.
  std::vector<std::string> InputNames(absl::string_view slot) const;

  // Records an error of the caller's own ("axis is 7 when the rank is 4"); the first one is kept.
  void Fail(absl::string_view message);
  const absl::Status& status() const { return status_; }
  const Op& op() const { return op_; }
  // Null where arguments have no names.
  const Program* program() const { return program_; }

 private:
  const Op& op_;
  absl::Status status_;
  const Program* program_;
};

}  // namespace interp
