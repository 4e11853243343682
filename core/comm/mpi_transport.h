// MPI as a transport, out of libinterp_mpi.so: a library of its own, so that interp itself needs no
// MPI. It lies beside libinterp.so, where the build has found an MPI.
#pragma once

#include <string>

#include "core/comm/transport.h"

namespace interp {

// A transport over MPI_COMM_WORLD. Errors of the call: NotFound without the module or without the
// MPI that it was built with; it says which. `path` overrides where the module lies. One transport
// can be made in a process.
absl::StatusOr<MakeTransport> MpiTransport(const std::string& path = "");

}  // namespace interp
