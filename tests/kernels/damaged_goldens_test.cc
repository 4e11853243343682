// Golden cases with something wrong: other attributes, arguments, shapes, dtypes, LoDs or values
// than the op expects. Each run ends with a result or with an error. What is read or written beyond
// a tensor shows under AddressSanitizer.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "core/any_op.h"
#include "core/program_load.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/golden_run.h"

namespace interp {
namespace {

using testing::GoldenCase;

constexpr int kMostCases = 4;           // of one op
constexpr int kDamages = 24;            // of one case
constexpr size_t kMostBytes = 1 << 18;  // of the feeds of a case

// Makes one thing of a case wrong at a time.
class Damager {
 public:
  explicit Damager(uint32_t seed) : random_(seed) {}

  void Damage(Program& program, std::vector<NamedTensor>& feeds) {
    switch (Below(feeds.empty() ? 2 : 6)) {
      case 0:
        return DamageAttr(AnyOp(program));
      case 1:
        return DamageSlots(program, AnyOp(program));
      default:
        return DamageFeed(program, feeds[Below(feeds.size())].second);
    }
  }

  // Declares feeds as they are, so that kernels see them.
  static void Declare(Program& program, const std::vector<NamedTensor>& feeds) {
    for (const auto& [name, tensor] : feeds) {
      for (Var& var : program.blocks[0].vars) {
        if (program.NameOf(var.id) != name) continue;
        var.dtype = tensor.dtype;
        var.dims.assign(tensor.shape.begin(), tensor.shape.end());
        var.need_check_feed = false;
      }
    }
  }

 private:
  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  template <typename T, size_t n>
  T OneOf(const T (&values)[n]) {
    return values[Below(n)];
  }

  int64_t OddInteger() {
    return OneOf<int64_t>({-2147483648LL, -1000, -3, -2, -1, 0, 1, 2, 3, 5, 8, 100, 1 << 20,
                           2147483647LL, std::numeric_limits<int64_t>::max(),
                           std::numeric_limits<int64_t>::min()});
  }
  double OddNumber() {
    return OneOf<double>({-1e30, -1, -0.5, 0, 0.5, 1, 3, 1e30, std::nan(""),
                          std::numeric_limits<double>::infinity()});
  }

  Op& AnyOp(Program& program) {
    std::vector<Op>& ops = program.blocks[0].ops;
    for (int tries = 0; tries < 20; ++tries) {
      Op& op = ops[Below(ops.size())];
      if (op.type != "feed" && op.type != "fetch") return op;
    }
    return ops[0];
  }

  void Change(int32_t& value) { value = static_cast<int32_t>(OddInteger()); }
  void Change(int64_t& value) { value = OddInteger(); }
  void Change(float& value) { value = static_cast<float>(OddNumber()); }
  void Change(double& value) { value = OddNumber(); }
  void Change(bool& value) { value = !value; }
  void Change(std::string& value) {
    value = OneOf<const char*>({"", "nonsense", "NHWC", "max", "SUM", "tanh", "nearest"});
  }
  template <typename T>
  void Change(T&) {}  // blocks, names, scalars
  void Change(std::vector<bool>& values) { values.clear(); }
  template <typename T>
  void Change(std::vector<T>& values) {
    switch (Below(4)) {
      case 0:
        return values.clear();
      case 1:
        values.emplace_back();
        return Change(values.back());
      case 2:
        if (!values.empty()) values.pop_back();
        return;
      default:
        if (!values.empty()) Change(values[Below(values.size())]);
    }
  }

  void DamageAttr(Op& op) {
    if (op.attrs.empty()) return;
    const size_t at = Below(op.attrs.size());
    if (Below(8) == 0) {
      op.attrs.erase(op.attrs.begin() + static_cast<int64_t>(at));
    } else {
      std::visit([this](auto& value) { Change(value); }, op.attrs[at].value);
      op.attrs[at].wire.clear();
    }
  }

  void DamageSlots(const Program& program, Op& op) {
    std::vector<Slot>& slots = Below(3) == 0 ? op.outputs : op.inputs;
    if (slots.empty()) return;
    Slot& slot = slots[Below(slots.size())];
    switch (Below(4)) {
      case 0:
        return slot.args.clear();
      case 1:
        if (!slot.args.empty()) slot.args.push_back(slot.args[Below(slot.args.size())]);
        return;
      case 2:
        return std::swap(slot.args, slots[Below(slots.size())].args);
      default:
        if (slot.args.empty()) return;
        slot.args[Below(slot.args.size())] = static_cast<VarId>(Below(program.names.size()));
    }
  }

  void DamageFeed(const Program&, Tensor& tensor) {
    switch (Below(5)) {
      case 0:
        return ChangeShape(tensor);
      case 1:
        return ChangeRank(tensor);
      case 2:
        tensor.dtype = OneOf<DType>({DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool,
                                     DType::kFloat64, DType::kInt8});
        return Refill(tensor);
      case 3:
        return ChangeLod(tensor);
      default:
        return ChangeValues(tensor);
    }
  }

  void ChangeShape(Tensor& tensor) {
    if (tensor.shape.rank() == 0) return;
    int64_t& dim = tensor.shape[static_cast<int>(Below(tensor.shape.rank()))];
    const int64_t dims[] = {0, 1, dim + 1, dim * 2, dim > 0 ? dim - 1 : 3, 7};
    dim = OneOf(dims);
    Refill(tensor);
  }

  void ChangeRank(Tensor& tensor) {
    const int rank = tensor.shape.rank();
    if (rank > 0 && Below(2) == 0) {
      tensor.shape.resize(rank - 1);
    } else if (Below(4) == 0) {
      tensor.shape.resize(kMaxRank);
    } else if (rank < kMaxRank) {
      tensor.shape.push_back(OneOf<int64_t>({0, 1, 2}));
    }
    Refill(tensor);
  }

  void ChangeLod(Tensor& tensor) {
    const int64_t rows = tensor.shape.rank() == 0 ? 0 : tensor.shape[0];
    switch (Below(4)) {
      case 0:
        return tensor.lod.clear();
      case 1:
        tensor.lod = {{0, rows}};
        return;
      case 2:
        tensor.lod = {{0, rows / 2, rows / 2, rows}};
        return;
      default:
        tensor.lod = {{0, 1, 2}, {0, rows / 2, rows}};
    }
  }

  // Numbers of any size, mostly small ones that may be indices.
  void ChangeValues(Tensor& tensor) {
    Refill(tensor);
    const auto fill = [&](auto* data, auto value) {
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        data[i] = static_cast<std::remove_reference_t<decltype(*data)>>(value());
      }
    };
    if (tensor.dtype == DType::kInt64)
      fill(tensor.mutable_data<int64_t>(), [&] { return Index(); });
    if (tensor.dtype == DType::kInt32)
      fill(tensor.mutable_data<int32_t>(), [&] { return Index(); });
    if (tensor.dtype == DType::kFloat32) {
      fill(tensor.mutable_data<float>(), [&] { return OddNumber(); });
    }
  }
  int64_t Index() { return Below(3) == 0 ? OddInteger() : static_cast<int64_t>(Below(4)); }

  void Refill(Tensor& tensor) {
    if (tensor.shape.CheckedNumel().value_or(1 << 20) >= 1 << 20) tensor.shape = Shape{2};
    tensor.DropMemory();
    ASSERT_TRUE(tensor.Allocate(SystemAllocator()).ok());
    std::memset(tensor.mutable_raw_data(), Below(2) == 0 ? 0 : 1, tensor.size_bytes());
    if (Below(2) == 0) tensor.lod.clear();
  }

  std::mt19937 random_;
};

absl::Status RunDamaged(const GoldenCase& golden, uint32_t seed) {
  INTERP_ASSIGN_OR_RETURN(Program program, LoadProgram(golden.program));
  std::vector<NamedTensor> feeds = golden.feeds;
  Damager damager(seed);
  for (uint32_t i = 0; i <= seed % 3; ++i) damager.Damage(program, feeds);
  Damager::Declare(program, feeds);
  INTERP_ASSIGN_OR_RETURN(auto core, InterpreterCore::Create(std::move(program), {}, {}, nullptr,
                                                             testing::DamagedOptions()));
  return testing::RunDamagedTwice(*core, feeds);
}

size_t FeedBytes(const GoldenCase& golden) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : golden.feeds) bytes += tensor.size_bytes();
  return bytes;
}

class DamagedGoldensTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DamagedGoldensTest, EndWithAResultOrAnError) {
  const std::vector<std::string>& folders = testing::GoldenCasesByOp().at(GetParam());
  const size_t step = std::max<size_t>(1, folders.size() / kMostCases);
  int runs = 0;
  for (size_t at = 0; at < folders.size(); at += step) {
    const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folders[at]);
    ASSERT_TRUE(golden.ok()) << golden.status();
    if (FeedBytes(*golden) > kMostBytes) continue;
    for (uint32_t seed = 0; seed < kDamages; ++seed) {
      const absl::Status status = RunDamaged(*golden, seed + 1000 * static_cast<uint32_t>(at));
      EXPECT_FALSE(absl::IsInternal(status)) << folders[at] << ", seed " << seed << ": " << status;
      ++runs;
    }
  }
  RecordProperty("runs", runs);
}

INSTANTIATE_TEST_SUITE_P(Goldens, DamagedGoldensTest, ::testing::ValuesIn(testing::GoldenOpTypes()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DamagedGoldensTest);

}  // namespace
}  // namespace interp
