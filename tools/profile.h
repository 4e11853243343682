// Profile: where the time of runs goes, per op type and per instruction, and what was achieved in
// it: operations and bytes per second, and how near to the machine's limit that is.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_writer.h"
#include "interpreter/inspect/instruction_cost.h"
#include "interpreter/inspect/machine_limit.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/observer.h"

namespace interp {

// Adds up the time of each instruction, of those that run a block without what the block takes. One
// thread at a time runs an instruction, so its counters need no lock.
class Profile : public RunObserver {
 public:
  // Borrows the plans of all blocks.
  explicit Profile(absl::Span<const Plan> plans);

  void OnInstruction(int32_t instruction, int worker, int64_t start_ns, int64_t end_ns) override;

  // What each instruction computes and moves per call. Without it only times are shown.
  void SetCosts(std::vector<InstructionCost> costs) { costs_ = std::move(costs); }

  // What kernels computed with (InterpreterCore::algorithms).
  void SetAlgorithms(std::vector<std::string> algorithms) { algorithms_ = std::move(algorithms); }

  // The types that instructions of the host compute in, as costs tell.
  std::vector<DType> DTypes() const;
  // What the machine can do at most. Without it, or without costs, no shares of it are shown.
  void SetLimit(MachineLimit limit) { limit_ = std::move(limit); }

  // Forgets the times.
  void Reset();
  // Two tables, most expensive rows first: op types, and the first instructions.
  std::string ToText() const;
  void WriteJson(JsonWriter& json) const;

 private:
  struct Total {
    int64_t calls = 0;
    int64_t total_ns = 0;
    double bytes = 0;  // of all calls; 0: unknown
    double flops = 0;
    double least_ns = 0;  // that the machine takes for both; 0: unknown
    Total& operator+=(const Total& other);
  };
  struct Row {
    std::string op_type;
    Total total;
  };
  static void WriteRates(const Total& total, JsonWriter& json);
  const Instruction& InstructionOf(int32_t number) const;
  Total TotalOf(int32_t number) const;
  std::vector<Row> ByOpType() const;
  std::vector<int32_t> ByTime() const;
  std::vector<std::string> InstructionCells(int32_t number, int64_t all_ns) const;
  std::string OpIndexText(int32_t number) const;
  std::string AlgorithmOf(int32_t number) const;
  int64_t AllNs() const;

  const absl::Span<const Plan> plans_;
  std::vector<InstrRef> instructions_;   // by number in the program
  std::vector<Total> totals_;            // likewise; calls and times
  std::vector<InstructionCost> costs_;   // likewise, or empty
  std::vector<std::string> algorithms_;  // likewise, or empty
  MachineLimit limit_;
};

}  // namespace interp
