// pyramid_hash: for each run of 2 to `pyramid_layer` ids of a sequence, shorter runs first, a row
// of `num_emb` numbers out of W: pieces of `rand_len` numbers that start where XXH32 of the ids, as
// floats, modulo `space_len` says, with another seed for each piece. A sequence without runs has a
// row of zeros. DropPos says of each run whether it has a row: one that is not in the filter
// WhiteList or is in BlackList has none, nor in training one that is dropped by chance; else rows
// are multiplied by `drop_out_percent`. X_Temp_Out has the ids as floats.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/all_present.h"
#include "kernels/util/shape_args.h"

namespace interp::pyramid_hash {
namespace {

constexpr int kX = 0;
constexpr int kW = 1;
constexpr int kWhiteList = 2;
constexpr int kBlackList = 3;
constexpr int kOut = 0;
constexpr int kDropPos = 1;
constexpr int kTemp = 2;

struct Attrs {
  int64_t width = 0;
  int64_t space = 0;
  int64_t layers = 2;
  int64_t piece = 0;
  float drop = 0;
  bool training = false;
  bool white = false;
  bool black = false;
  uint32_t seed = 0;
};

Attrs ReadAttrs(AttrReader& reader) {
  const bool filters = reader.Bool("use_filter", true);
  const Attrs attrs = {.width = reader.Int("num_emb", 0),
                       .space = reader.Int("space_len", 0),
                       .layers = reader.Int("pyramid_layer", 2),
                       .piece = reader.Int("rand_len", 0),
                       .drop = reader.Float("drop_out_percent", 0),
                       .training = reader.Int("is_training", 0) != 0,
                       .white = reader.Int("white_list_len", 0) > 0 && filters,
                       .black = reader.Int("black_list_len", 0) > 0 && filters,
                       .seed = static_cast<uint32_t>(reader.Int("seed", 0))};
  if (attrs.piece < 1 || attrs.width < 1 || attrs.width % attrs.piece != 0 || attrs.space < 1) {
    reader.Fail(absl::StrCat("'num_emb' is ", attrs.width, ", 'rand_len' ", attrs.piece,
                             " and 'space_len' ", attrs.space,
                             ", expected a multiple of the second, and positive numbers"));
  }
  constexpr int64_t kMostLayers = 1024;
  if (attrs.layers < 1 || attrs.layers > kMostLayers) {
    reader.Fail(absl::StrCat("'pyramid_layer' is ", attrs.layers, ", expected 1 to ", kMostLayers));
  }
  return attrs;
}

static_assert(std::endian::native == std::endian::little);

// XXH32 of words of 4 bytes, as its specification has it.
uint32_t Xxh32(const float* floats, int64_t count, uint32_t seed) {
  constexpr uint32_t kPrime1 = 0x9E3779B1;
  constexpr uint32_t kPrime2 = 0x85EBCA77;
  constexpr uint32_t kPrime3 = 0xC2B2AE3D;
  constexpr uint32_t kPrime4 = 0x27D4EB2F;
  constexpr uint32_t kPrime5 = 0x165667B1;
  const auto word = [floats](int64_t i) { return std::bit_cast<uint32_t>(floats[i]); };
  uint32_t hash = seed + kPrime5;
  int64_t i = 0;
  if (count >= 4) {
    std::array<uint32_t, 4> lanes = {seed + kPrime1 + kPrime2, seed + kPrime2, seed,
                                     seed - kPrime1};
    for (; i + 4 <= count; i += 4) {
      for (int lane = 0; lane < 4; ++lane) {
        lanes[lane] = std::rotl(lanes[lane] + word(i + lane) * kPrime2, 13) * kPrime1;
      }
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
  }
  hash += static_cast<uint32_t>(count * 4);
  for (; i < count; ++i) hash = std::rotl(hash + word(i) * kPrime3, 17) * kPrime4;
  hash = (hash ^ hash >> 15) * kPrime2;
  hash = (hash ^ hash >> 13) * kPrime3;
  return hash ^ hash >> 16;
}

// A Bloom filter as Paddle keeps it in a tensor of floats: four numbers of 64 bits, the second how
// many bits there are and the third how many pairs of them a key has, then the bits.
class BloomFilter {
 public:
  static absl::StatusOr<BloomFilter> Of(const Tensor& list, absl::string_view name) {
    constexpr size_t kHeader = 32;
    constexpr uint64_t kMagic = 17070416;
    constexpr uint64_t kMostPairs = 1024;  // of hashes
    BloomFilter filter;
    const size_t size = static_cast<size_t>(list.numel()) * sizeof(float);
    std::array<uint64_t, 4> header = {};
    if (size >= kHeader) std::memcpy(header.data(), list.raw_data(), kHeader);
    if (header[0] != kMagic || header[1] == 0 || header[1] / 8 > size - kHeader ||
        header[2] > kMostPairs) {
      return InvalidArgument("input '", name, "' of ", list.numel(), " numbers is no Bloom filter");
    }
    filter.bits_ = header[1];
    filter.pairs_ = header[2];
    filter.bytes_ = static_cast<const uint8_t*>(list.raw_data()) + kHeader;
    filter.size_ = size - kHeader;
    return filter;
  }

  bool Has(const float* key, int64_t count) const {
    for (uint64_t i = 0; i < pairs_; ++i) {
      for (const uint64_t hash : Murmur(key, count, static_cast<uint32_t>(i))) {
        const uint64_t bit = hash % bits_;
        if (bit / 8 >= size_ || (bytes_[bit / 8] >> (7 - bit % 8) & 1) == 0) return false;
      }
    }
    return true;
  }

 private:
  static uint64_t Mix(uint64_t k) {
    k = (k ^ k >> 33) * 0xff51afd7ed558ccd;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53;
    return k ^ k >> 33;
  }

  // MurmurHash3, x64, 128 bits, of words of 4 bytes.
  static std::array<uint64_t, 2> Murmur(const float* key, int64_t count, uint32_t seed) {
    constexpr uint64_t kFirst = 0x87c37b91114253d5;
    constexpr uint64_t kSecond = 0x4cf5ad432745937f;
    const auto word = [=](int64_t i) {  // of 8 bytes
      uint64_t value = std::bit_cast<uint32_t>(key[2 * i]);
      if (2 * i + 1 < count) value |= uint64_t{std::bit_cast<uint32_t>(key[2 * i + 1])} << 32;
      return value;
    };
    uint64_t a = seed;
    uint64_t b = seed;
    int64_t i = 0;
    for (; 2 * i + 4 <= count; i += 2) {
      a ^= std::rotl(word(i) * kFirst, 31) * kSecond;
      a = (std::rotl(a, 27) + b) * 5 + 0x52dce729;
      b ^= std::rotl(word(i + 1) * kSecond, 33) * kFirst;
      b = (std::rotl(b, 31) + a) * 5 + 0x38495ab5;
    }
    if (2 * i + 2 < count) b ^= std::rotl(word(i + 1) * kSecond, 33) * kFirst;
    if (2 * i < count) a ^= std::rotl(word(i) * kFirst, 31) * kSecond;
    const auto size = static_cast<uint64_t>(count * 4);
    a ^= size;
    b ^= size;
    a += b;
    b += a;
    a = Mix(a);
    b = Mix(b);
    a += b;
    return {a, b + a};
  }

  uint64_t bits_ = 1;
  uint64_t pairs_ = 0;
  const uint8_t* bytes_ = nullptr;
  uint64_t size_ = 0;
};

// Calls body(first id, ids) for the runs of a sequence of ids.
template <typename Body>
void ForEachRun(int64_t begin, int64_t end, int64_t layers, const Body& body) {
  for (int64_t more = 1; more < layers && more < end - begin; ++more) {
    for (int64_t first = begin; first + more < end; ++first) body(first, more + 1);
  }
}

absl::Status CheckInputs(const KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& w = ctx.input(kW);
  if (x.shape.rank() != 2 || x.shape[1] != 1 || x.dtype != DType::kInt32) {
    return InvalidArgument("input 'X' is ", DescribeType(x), ", expected int32[n,1]");
  }
  if (!(w.shape == Shape{attrs.space + attrs.piece, 1})) {
    return InvalidArgument("input 'W' has shape ", ToString(w.shape), ", expected [",
                           attrs.space + attrs.piece, ",1]");
  }
  return absl::OkStatus();
}

absl::StatusOr<BloomFilter> FilterOf(const KernelContext& ctx, int slot, absl::string_view name) {
  INTERP_RETURN_IF_ERROR(CheckPresent(ctx, slot, name));
  const Tensor& list = ctx.input(slot);
  if (list.dtype != DType::kFloat32) {
    return InvalidArgument("input '", name, "' is ", DescribeType(list), ", expected float32");
  }
  return BloomFilter::Of(list, name);
}

// Which runs have a row, 1 or 0, in the order of ForEachRun. Draws of Paddle's generator.
absl::StatusOr<std::vector<int32_t>> Kept(const KernelContext& ctx, Offsets offsets,
                                          const float* ids) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  BloomFilter white;
  BloomFilter black;
  if (attrs.white) {
    INTERP_ASSIGN_OR_RETURN(white, FilterOf(ctx, kWhiteList, "WhiteList"));
  }
  if (attrs.black) {
    INTERP_ASSIGN_OR_RETURN(black, FilterOf(ctx, kBlackList, "BlackList"));
  }
  uint32_t seed = attrs.seed;
  std::vector<int32_t> kept;
  for (int64_t n = 0; n < SequenceCount(offsets); ++n) {
    ForEachRun(offsets[n], offsets[n + 1], attrs.layers, [&](int64_t first, int64_t count) {
      bool keeps = !attrs.white || white.Has(ids + first, count);
      keeps = keeps && (!attrs.black || !black.Has(ids + first, count));
      if (keeps && attrs.training) {
        keeps = static_cast<float>(rand_r(&seed)) / static_cast<float>(RAND_MAX) >= attrs.drop;
      }
      kept.push_back(keeps ? 1 : 0);
    });
  }
  return kept;
}

template <typename T>
void FillRow(const Attrs& attrs, const float* ids, int64_t count, const T* w, T* out) {
  const T factor = attrs.training ? T{1} : static_cast<T>(attrs.drop);
  for (int64_t at = 0; at < attrs.width; at += attrs.piece) {
    const auto seed = static_cast<uint32_t>(at);
    const int64_t from = Xxh32(ids, count, seed) % static_cast<uint32_t>(attrs.space);
    for (int64_t i = 0; i < attrs.piece; ++i) out[at + i] = factor * w[from + i];
  }
}

template <typename T>
absl::Status GiveShape(KernelContext& ctx, int slot, Shape shape, std::vector<int64_t> lod) {
  Tensor& out = ctx.output(slot);
  out.shape = shape;
  out.lod.clear();
  if (!lod.empty()) out.lod = {std::move(lod)};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::fill_n(out.mutable_data<T>(), out.numel(), T{0});
  return absl::OkStatus();
}

template <typename T>
absl::Status PyramidHash(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  INTERP_RETURN_IF_ERROR(GiveShape<float>(ctx, kTemp, x.shape, {}));
  float* const ids = ctx.output(kTemp).mutable_data<float>();
  std::copy_n(x.data<int32_t>(), x.numel(), ids);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int32_t> kept, Kept(ctx, offsets, ids));
  std::vector<int64_t> rows = {0};
  std::vector<int64_t> runs = {0};
  auto next = kept.begin();
  for (int64_t n = 0; n < SequenceCount(offsets); ++n) {
    int64_t count = 0;
    ForEachRun(offsets[n], offsets[n + 1], attrs.layers,
               [&](int64_t, int64_t) { count += *next++; });
    runs.push_back(runs.back() + count);
    rows.push_back(rows.back() + std::max<int64_t>(count, 1));
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t places, CheckedProduct(x.numel(), attrs.layers));
  INTERP_RETURN_IF_ERROR(GiveShape<int32_t>(ctx, kDropPos, {places, 1}, std::move(runs)));
  std::copy(kept.begin(), kept.end(), ctx.output(kDropPos).mutable_data<int32_t>());
  INTERP_RETURN_IF_ERROR(GiveShape<T>(ctx, kOut, {rows.back(), attrs.width}, rows));
  next = kept.begin();
  for (int64_t n = 0; n < SequenceCount(offsets); ++n) {
    T* to = ctx.output(kOut).mutable_data<T>() + rows[n] * attrs.width;
    ForEachRun(offsets[n], offsets[n + 1], attrs.layers, [&](int64_t first, int64_t count) {
      if (*next++ == 0) return;
      FillRow(attrs, ids + first, count, ctx.input(kW).data<T>(), to);
      to += attrs.width;
    });
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "pyramid_hash",
    .inputs = {{"X", kAnyDType},
               {"W"},
               {"WhiteList", kOptional | kAnyDType},
               {"BlackList", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"DropPos"}, {"X_Temp_Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kW); },
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kOut, ctx.input(kW));
          ctx.Set(kDropPos, DType::kInt32);
          ctx.Set(kTemp, DType::kFloat32);
        },
    .kernels = {{DType::kFloat32, PyramidHash<float>}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp::pyramid_hash
