#include "core/comm/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace interp {
namespace {

using ::testing::HasSubstr;

TEST(MpiTransportTest, SaysWhatIsMissing) {
  const auto transport = MpiTransport("/nowhere/libinterp_mpi.so");
  EXPECT_EQ(transport.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(transport.status().message()),
      HasSubstr("there is no '/nowhere/libinterp_mpi.so': this interp was built without MPI; "
                "build it where an MPI is installed (Debian: libopenmpi-dev)"));
}

}  // namespace
}  // namespace interp
