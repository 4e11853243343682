// The rules of a variable's queue. Internal to core/engine.
//
// Pushing locks all variables of an operation, in the order of their addresses, before it appends
// the first access and unlocks them after the last (two-phase locking). So pushes happen one after
// another as far as any two of them share variables, and the queues of all variables agree on who
// comes first: a cycle of operations that wait for each other cannot arise. Everything else locks
// one variable at a time.
//
// Who is granted: from the front of the queue either one writer or a run of readers. A reader
// behind a writer waits even while readers before that writer run, so writers do not starve.
//
// Memory order: what an operation did happens before whatever its completion grants, by the lock
// of the variable that grants, and by the counter `Record::blocked` for the variables before.
#pragma once

#include <string>
#include <vector>

#include "core/engine/record.h"

namespace interp::engine {

// Sorts the record's accesses by variable and merges those of one variable: reading and writing is
// updating. Ends with num_accesses as large as what is left.
void SortAndMerge(Record& record);

// Appends all accesses of a record, which are sorted and merged, at one moment. Returns how many
// are not granted; 0: the record is ready, and the caller's to run. kStale when a variable is not
// of its generation any more; then nothing has happened.
inline constexpr int32_t kStale = -1;
int32_t AppendAll(Record& record);

// The same for a record of one access, whatever the generation; true when it is ready. REQUIRES:
// the variable's lock is held.
bool AppendLast(Record& record);

// Takes an access out of its queue, granted or not, and collects the records that are ready now.
// REQUIRES: the variable's lock is held.
void RemoveLocked(Access& access, RecordList& ready);

// Ends a granted access, of an operation that has completed. A write raises the version, and
// sets the variable's error to `error`; null leaves it as it is.
void Release(Access& access, const ErrorRef* error, RecordList& ready);

}  // namespace interp::engine
