// The parts of VerifyPlan, one a property. Each adds what it finds wrong to the report, and counts
// what it has looked at. REQUIRES of all: CheckPlanStructure has passed.
#pragma once

#include "interpreter/verify/run_order.h"
#include "interpreter/verify/verify_plan.h"

namespace interp::verify {

// Counts the violation and keeps it while there is room.
void Add(VerifyReport& report, Violation violation);

// Conflicting accesses happen in order.
void CheckConflicts(const Plan& plan, RunOrder& order, VerifyReport& report);

// Values are read before an output is written over them. `X` of an inplace pair X -> Out holds
// something else afterwards, until it is written again. Other names of that memory are safe: the
// runner lets an output take over memory only when nobody else holds it, and a name that is still
// to be read has not been freed (CheckFrees) and so holds it. An instruction may read a variable
// that it writes only through such a pair.
void CheckOverwritten(const Plan& plan, VerifyReport& report);

// Frees by counts: the last of the instructions that list a variable frees it, so each use must be
// issued before one of those or be one. Frees in the trace order: once, at the last use or later.
// Memory itself is counted by its names, so each name is looked at alone.
void CheckFrees(const Plan& plan, RunOrder& order, VerifyReport& report);

// Counts and trace order against the kept edges. As the trace order obeys the edges, it needs no
// proof of its own: all else here is proved from the edges.
void CheckEdges(const Plan& plan, VerifyReport& report);

// Orders that no variable shows, of issue; see BuildDependencies. `blocks_with_effects`:
// BlocksWithEffects of all plans.
void CheckImplicitOrders(const Plan& plan, const std::vector<bool>& blocks_with_effects,
                         RunOrder& order, VerifyReport& report);

// Memory is touched where it lies: by the host, or by its device. Copies between places and what an
// instruction of a device reads while it is issued are apart. Hidden arguments are touched by the
// sub-block, whose plan is checked itself.
void CheckPlaces(const Plan& plan, VerifyReport& report);

// What instructions read and write of enclosing plans is said to be read and written.
void CheckCaptures(const Plan& plan, VerifyReport& report);

// Every record has its event and every wait its record.
void CheckEvents(const Plan& plan, const RunOrder& order, VerifyReport& report);

}  // namespace interp::verify
