// Profile: where the time of runs goes, per op type and per instruction, and what was achieved in
// it: operations and bytes per second.
#pragma once

#include <string>
#include <vector>

#include "core/json_writer.h"
#include "interpreter/instruction_cost.h"
#include "interpreter/observer.h"
#include "interpreter/plan.h"

namespace interp {

// Adds up the time of each instruction. An instruction runs once per run, and runs follow each
// other, so its counters need no lock.
class Profile : public RunObserver {
 public:
  // Borrows the plan.
  explicit Profile(const Plan& plan);

  void OnInstruction(InstrId instruction, int worker, int64_t start_ns, int64_t end_ns) override;

  // What each instruction computes and moves per call. Without it only times are shown.
  void SetCosts(std::vector<InstructionCost> costs) { costs_ = std::move(costs); }

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
    Total& operator+=(const Total& other);
  };
  struct Row {
    std::string op_type;
    Total total;
  };
  Total TotalOf(InstrId id) const;
  std::vector<Row> ByOpType() const;
  std::vector<InstrId> ByTime() const;
  std::vector<std::string> InstructionCells(InstrId id, int64_t all_ns) const;
  int64_t AllNs() const;

  const Plan& plan_;
  std::vector<Total> totals_;           // by InstrId; calls and times
  std::vector<InstructionCost> costs_;  // by InstrId, or empty
};

}  // namespace interp
