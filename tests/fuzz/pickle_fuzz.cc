// Any bytes as a pickle of parameters.
#include <cstdint>

#include "core/io/pickle_params.h"
#include "tests/fuzz/touch_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  const BufferRef file = BorrowBuffer(const_cast<uint8_t*>(data), size, /*writable=*/false);
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ParsePickledParams(file);
  if (!tensors.ok()) return 0;
  TouchTensors(*tensors);
  return 0;
}
