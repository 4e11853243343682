// Any bytes as a list of MXNet's: an error, or arrays that the file has room for.
#include <cstdint>
#include <cstdlib>

#include "core/io/array_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  const absl::StatusOr<ArrayList> list =
      ParseArrayList(BorrowBuffer(const_cast<uint8_t*>(data), size, /*writable=*/false));
  if (!list.ok()) return 0;
  size_t total = 0;
  for (const ListedArray& array : list->arrays) {
    total += array.tensor.size_bytes();
    if (array.rows.has_value()) total += array.rows->rows.size() * sizeof(int64_t);
  }
  if (total > size) std::abort();
  return 0;
}
