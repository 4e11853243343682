#pragma once

#include "passes/pass.h"

namespace interp {

// Gives the program one feed op for each fed variable and one fetch op for each fetched one.
//
//   relu(X=x) -> (Out=y)     becomes     feed(X=feed) -> (Out=x) {col=0}
//                                        relu(X=x) -> (Out=y)
//                                        fetch(X=y) -> (Out=fetch) {col=0}
//
// Feeds come first and fetches last, both in column order, whatever feed, fetch and fetch_v2 ops
// the program had before: those only say what is fed and fetched when the context does not. A
// variable is fetched as it is at the end of the program; any variable of block 0 can be, also a
// persistable one, a fed one, and one that is overwritten on the way. The list variables are called
// `feed` (FEED_MINIBATCH) and `fetch` (FETCH_LIST); a number is added where the program uses the
// name for something else.
//
// Ops of readers whose outputs are fed fall away (readers.h).
//
// Errors: NotFound for a name that block 0 does not know; InvalidArgument for a variable fed twice
// and for fetching what nothing writes, feeds or loads.
absl::StatusOr<Program> InsertFeedFetch(Program program, const PassContext& context);

}  // namespace interp
