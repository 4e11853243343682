// Any bytes as a pickle of parameters.
#include <cstdint>

#include "core/io/pickle_params.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  const BufferRef file = BorrowBuffer(const_cast<uint8_t*>(data), size, /*writable=*/false);
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ParsePickledParams(file);
  if (!tensors.ok()) return 0;
  uint64_t sum = 0;  // touches every byte, for the address sanitizer
  for (const auto& [name, tensor] : *tensors) {
    const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
    for (size_t i = 0; i < tensor.size_bytes(); ++i) sum += bytes[i];
  }
  volatile uint64_t sink = sum;
  (void)sink;
  return 0;
}
