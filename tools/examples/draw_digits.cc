// Writes drawings of digits for `interp train`:  draw_digits FILE.npz COUNT SEED
//
// The arrays are `image`, float32[COUNT,1,28,28], and `label`, int64[COUNT,1].
#include <cstdint>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "core/io/npz.h"
#include "digits.h"

namespace {

absl::Status WriteDigits(const char* path, const char* count_text, const char* seed_text) {
  constexpr int64_t kMost = 10'000'000;
  int64_t count = 0;
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(count_text, &count) || count < 1 || count > kMost) {
    return interp::InvalidArgument("COUNT is '", count_text, "', expected 1 to ", kMost);
  }
  if (!absl::SimpleAtoi(seed_text, &seed)) {
    return interp::InvalidArgument("SEED is '", seed_text, "', expected a number");
  }
  INTERP_ASSIGN_OR_RETURN(const interp::examples::Digits digits,
                          interp::examples::DrawDigits(count, seed));
  return interp::WriteNpz(path, {{{"image", digits.images}, {"label", digits.labels}}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: draw_digits FILE.npz COUNT SEED\n");
    return 2;
  }
  const absl::Status status = WriteDigits(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
