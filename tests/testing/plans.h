// Plans of programs given as text, over ProbeOps().
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/program_parse.h"
#include "interpreter/compile/build_plan.h"
#include "interpreter/plan/plan.h"
#include "tests/testing/probe_ops.h"

namespace interp::testing {

// The plan of block 0.
inline absl::StatusOr<Plan> MainPlan(const Program& program, const PlanOptions& options,
                                     const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(std::vector<Plan> plans, BuildPlans(program, options, ops));
  return std::move(plans[0]);
}

// One plan as all plans of a program.
inline absl::Span<const Plan> AsPlans(const Plan& plan) { return absl::MakeConstSpan(&plan, 1); }

// A copy of lists to be changed one by one, and back.
inline std::vector<std::vector<int32_t>> Apart(const IdLists& lists) {
  std::vector<std::vector<int32_t>> apart;
  for (size_t i = 0; i < lists.size(); ++i) {
    const absl::Span<const int32_t> list = lists[static_cast<InstrId>(i)];
    apart.emplace_back(list.begin(), list.end());
  }
  return apart;
}
inline IdLists Together(const std::vector<std::vector<int32_t>>& apart) {
  IdLists lists;
  for (const std::vector<int32_t>& list : apart) lists.Append(list);
  return lists;
}
// Applies `change` to the list of instruction `id`.
template <typename Change>
void ChangeList(IdLists& lists, InstrId id, const Change& change) {
  std::vector<std::vector<int32_t>> apart = Apart(lists);
  change(apart[id]);
  lists = Together(apart);
}

inline absl::StatusOr<std::vector<Plan>> PlansOf(absl::string_view text,
                                                 const PlanOptions& options = {}) {
  INTERP_ASSIGN_OR_RETURN(const Program program, ParseProgram(text));
  return BuildPlans(program, options, ProbeOps());
}

inline absl::StatusOr<Plan> PlanOf(absl::string_view text, const PlanOptions& options = {}) {
  INTERP_ASSIGN_OR_RETURN(const Program program, ParseProgram(text));
  return MainPlan(program, options, ProbeOps());
}

inline VarId VarNamed(const Plan& plan, absl::string_view name) {
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    if (plan.vars[id].name == name) return static_cast<VarId>(id);
  }
  return -1;
}

// "mix(x,w)->a", names only.
inline std::string Brief(const Plan& plan, const Instruction& instruction) {
  const auto name = [&](std::string* out, VarId id) {
    *out += id < 0 ? std::string(kEmptyVarName) : plan.vars[id].name;
  };
  return absl::StrCat(instruction.op_type, "(", absl::StrJoin(instruction.inputs, ",", name), ")->",
                      absl::StrJoin(instruction.outputs, ",", name));
}

inline std::vector<std::string> Briefs(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Instruction& instruction : plan.instructions) {
    texts.push_back(Brief(plan, instruction));
  }
  return texts;
}

// reaches[i][j]: a path leads from i to j over the edges that `keep` accepts. Quadratic memory.
template <typename Keep>
std::vector<std::vector<bool>> Closure(size_t n, const std::vector<Edge>& edges, Keep keep) {
  std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
  for (const Edge& edge : edges) {
    if (keep(edge)) reaches[edge.from][edge.to] = true;
  }
  // Edges lead forward: from the last instruction to the first, what follows is complete.
  for (size_t from = n; from-- > 0;) {
    for (size_t via = from + 1; via < n; ++via) {
      if (!reaches[from][via]) continue;
      for (size_t to = via + 1; to < n; ++to) {
        if (reaches[via][to]) reaches[from][to] = true;
      }
    }
  }
  return reaches;
}

}  // namespace interp::testing
