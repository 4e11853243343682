// hash: Out[..., h] = XXH64 of the bytes of a row of X (its last dimension) with seed h, modulo
// `mod_by`, for h below `num_hash`.
#include <bit>
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct HashAttrs {
  int64_t num_hash = 1;
  int64_t mod_by = 100000;
};

HashAttrs ReadHashAttrs(AttrReader& reader) {
  const HashAttrs attrs = {reader.Int("num_hash", 1), reader.Long("mod_by", 100000)};
  if (attrs.num_hash < 1 || attrs.mod_by < 1) {
    reader.Fail(absl::StrCat("'num_hash' is ", attrs.num_hash, " and 'mod_by' ", attrs.mod_by,
                             ", expected at least 1"));
  }
  return attrs;
}

absl::Status InferHash(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  if (x.shape.rank() == 0 || x.shape.rank() == kMaxRank) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected rows of ids");
  }
  Shape shape = x.shape;
  shape[shape.rank() - 1] = ctx.attrs<HashAttrs>().num_hash;
  shape.push_back(1);
  ctx.SetShape(kOut, shape);
  ShareLod(x, ctx.output(kOut));
  return absl::OkStatus();
}

// XXH64 as its specification has it, on a little-endian machine.
namespace xxh64 {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

static_assert(std::endian::native == std::endian::little);

template <typename Word>
uint64_t Load(const uint8_t* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

// The whole stripes of 32 bytes, in four lanes.
uint64_t Stripes(const uint8_t*& bytes, const uint8_t* end, uint64_t seed) {
  uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  for (; end - bytes >= 32; bytes += 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Load<uint64_t>(bytes + 8 * i));
  }
  uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                  std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  return hash;
}

uint64_t Hash(const uint8_t* bytes, int64_t size, uint64_t seed) {
  const uint8_t* const end = bytes + size;
  uint64_t hash = size >= 32 ? Stripes(bytes, end, seed) : seed + kPrime5;
  hash += static_cast<uint64_t>(size);
  for (; end - bytes >= 8; bytes += 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(bytes)), 27) * kPrime1 + kPrime4;
  }
  // Ids have 4 or 8 bytes: no single bytes are left.
  if (end - bytes >= 4) {
    hash = std::rotl(hash ^ Load<uint32_t>(bytes) * kPrime1, 23) * kPrime2 + kPrime3;
  }
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace xxh64

template <typename T>
absl::Status HashRows(KernelContext& ctx) {
  const HashAttrs attrs = ctx.attrs<HashAttrs>();
  const Tensor& x = ctx.input(kX);
  const auto row_bytes = x.shape.back() * static_cast<int64_t>(sizeof(T));
  const auto* const in = static_cast<const uint8_t*>(x.raw_data());
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t rows = x.shape.numel(0, x.shape.rank() - 1);
  const auto modulus = static_cast<uint64_t>(attrs.mod_by);
  constexpr int64_t kGrain = 2048;  // hashes
  ParallelFor(ctx.num_threads(), rows, GrainFor(attrs.num_hash, kGrain),
              [=](int64_t begin, int64_t end) {
                T* to = out + begin * attrs.num_hash;
                for (int64_t i = begin; i < end; ++i) {
                  for (int64_t seed = 0; seed < attrs.num_hash; ++seed) {
                    const uint64_t hash =
                        xxh64::Hash(in + i * row_bytes, row_bytes, static_cast<uint64_t>(seed));
                    *to++ = static_cast<T>(hash % modulus);
                  }
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "hash",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<HashAttrs, ReadHashAttrs>,
    .infer = InferHash,
    .kernels = {{DType::kInt64, HashRows<int64_t>}, {DType::kInt32, HashRows<int32_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
