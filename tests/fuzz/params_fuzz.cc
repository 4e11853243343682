// Any bytes as a combined parameter file: listing and reading it agree.
#include <cstdint>
#include <cstdlib>

#include "core/io/params.h"
#include "tests/fuzz/touch_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  const absl::StatusOr<std::vector<ParamRecord>> records =
      ParseParamRecords({reinterpret_cast<const char*>(data), size});
  const size_t num_params = records.ok() ? records->size() : 3;
  std::vector<ParamDecl> params;
  for (size_t i = 0; i < num_params; ++i)
    params.push_back({absl::StrCat("p", i), DType::kUndefined, {}});

  const BufferRef file = BorrowBuffer(const_cast<uint8_t*>(data), size, /*writable=*/false);
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ParseCombinedParams(file, params);
  if (tensors.ok() != records.ok()) std::abort();
  if (!tensors.ok()) return 0;
  TouchTensors(*tensors);
  return 0;
}
