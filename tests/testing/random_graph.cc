// Long because each kind of op sees and changes what the ops before it have left.
#include "tests/testing/random_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

using Dims = TestProgram::Dims;

struct Value {
  std::string name;
  Dims dims;  // as declared
  DType dtype;
  bool rewritable = false;
  bool image() const { return dims.size() == 4; }
};

// A loop or branch that was made, and what is in it.
struct Loop {
  int32_t block = -1;
  std::string steps;
  std::vector<Value> values = {};
  std::vector<std::string> arrays = {};
  std::vector<std::string> rows = {};
  std::vector<Loop> inner = {};
};

class GraphMaker {
 public:
  GraphMaker(uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options), builder_(DType::kInt64) {}

  RandomGraph Make() {
    DeclareInputs();
    while (tag_ < options_.num_ops) AddOp(++tag_);
    RandomGraph graph;
    for (int i = 0; i < options_.num_fetches; ++i) builder_.Fetch(Any().name);
    graph.program = builder_.Build();
    if (options_.num_devices > 0) Place(graph.program);
    graph.params = params_;
    graph.num_ops = options_.num_ops;
    return graph;
  }

 private:
  // How much there was of everything.
  struct Seen {
    size_t values = 0;
    size_t arrays = 0;
    size_t rows = 0;
  };
  Seen Now() const { return {values_.size(), arrays_.size(), rows_.size()}; }

  // Uniform in [0, n).
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

  void Place(Program& program) {
    for (Block& block : program.blocks) {
      for (Op& op : block.ops) Place(op);
    }
  }
  void Place(Op& op) {
    if (Chance(30)) return;  // where the plan's options say
    const int device = Below(options_.num_devices + 1) - 1;
    const std::string place = device < 0 ? "cpu" : absl::StrCat("sim:", device);
    op.attrs.push_back({"op_device", place});
    if (Chance(15)) {
      op.attrs.push_back({"execution_stream", absl::StrCat("own", Below(2))});
    }
  }

  void DeclareInputs() {
    for (int i = 0; i < options_.num_feeds; ++i) {
      const bool image = options_.images && i == options_.num_feeds - 1;
      Value fed{absl::StrCat("x", i), image ? Dims{-1, 3, 2, 5} : Dims{-1, i + 2}, DType::kInt64};
      builder_.Feed(fed.name, fed.dims, fed.dtype);
      values_.push_back(std::move(fed));
    }
    for (int i = 0; i < options_.num_params; ++i) {
      Value param{absl::StrCat("w", i), {4}, DType::kInt64};
      builder_.Param(param.name, param.dims, param.dtype);
      params_.push_back(param.name);
      values_.push_back(std::move(param));
    }
  }

  // Recent values more often than old ones: chains, but also long skips.
  const Value& Any() {
    const int n = static_cast<int>(values_.size());
    return values_[Chance(60) ? n - 1 - Below(std::min(n, 6)) : Below(n)];
  }
  template <typename Predicate>
  const Value* AnyThat(Predicate fits) {
    for (int tries = 0; tries < 8; ++tries) {
      const Value& value = Any();
      if (fits(value)) return &value;
    }
    return nullptr;
  }

  // The name an op's result gets: mostly new, sometimes that of a value which is overwritten.
  std::string Result(Dims dims, DType dtype) {
    if (options_.rewrites && Chance(depth_ == 0 ? 12 : 35)) {
      if (const Value* old = Rewritable(dims, dtype)) return old->name;
    }
    return NewResult(std::move(dims), dtype);
  }
  const Value* Rewritable(const Dims& dims, DType dtype) {
    return AnyThat([&](const Value& value) {
      return value.rewritable && !value.image() && dims.size() != 4 && value.dtype == dtype &&
             value.dims.size() == dims.size();
    });
  }
  std::string NewResult(Dims dims, DType dtype) {
    Value value{absl::StrCat("v", next_++), std::move(dims), dtype, /*rewritable=*/true};
    builder_.Declare(value.name, value.dims, value.dtype);
    values_.push_back(value);
    return value.name;
  }

  static TestProgram::Attrs Tagged(int tag) { return {{"tag", tag}}; }
  static TestProgram::Attrs Shaped(int tag, std::vector<int32_t> shape) {
    return {{"tag", tag}, {"shape", std::move(shape)}};
  }

  void AddOp(int tag) {
    if (depth_ < options_.max_depth && Chance(15)) return AddBlock(tag);
    if (options_.growth && Chance(15)) return AddGrowth(tag);
    if (options_.rows && Chance(15)) return AddRows(tag);
    const int kind = Below(100);
    if (kind < 45) return AddMix(tag);
    if (kind < 55 && options_.images) return AddImage(tag);
    if (kind < 65) return AddView(tag);
    if (kind < 70) return AddSplit(tag);
    if (kind < 76) return AddSource(tag);
    if (kind < 80) return AddShapeOf(tag);
    if (kind < 86 && options_.updates && options_.num_params > 0) return AddUpdate(tag);
    if (kind < 93 && options_.dynamic) return AddDynamic(tag);
    if (kind < 97 && options_.arrays) return AddArray(tag);
    AddMix(tag);
  }

  void AddMix(int tag) {
    std::vector<std::string> inputs;
    const Value first = Any();
    inputs.push_back(first.name);
    for (int more = Below(4); more > 0; --more) inputs.push_back(Any().name);
    builder_.Call("mix", inputs, Result(first.dims, first.dtype), Tagged(tag));
  }

  void AddImage(int tag) {
    const auto is_image = [](const Value& value) {
      return value.image() && value.dtype == DType::kInt64;
    };
    const Value* found = AnyThat(is_image);
    if (found == nullptr) return AddMix(tag);
    const Value first = *found;
    if (Chance(30)) return AddTurn(first, tag);
    const auto is_alike = [&](const Value& value) {
      return is_image(value) && value.dims == first.dims;
    };
    std::vector<std::string> inputs = {first.name};
    const bool prefers = Chance(50);
    if (const Value* second = prefers ? nullptr : AnyThat(is_alike)) inputs.push_back(second->name);
    builder_.Call(prefers ? "image" : "follow", inputs, Result(first.dims, first.dtype),
                  Tagged(tag));
  }

  void AddTurn(const Value& image, int tag) {
    const bool to_last = Chance(50);
    Dims dims = image.dims;
    const auto channels = dims.begin() + 1;
    std::rotate(channels, to_last ? channels + 1 : dims.end() - 1, dims.end());
    builder_.Call(to_last ? "turn_last" : "turn_first", {image.name}, Result(dims, image.dtype),
                  Tagged(tag));
  }

  void AddView(int tag) {
    const Value x = Any();
    builder_.Call("view", {x.name}, Result({-1}, x.dtype), Shaped(tag, {-1}));
  }

  void AddSplit(int tag) {
    const Value x = Any();
    const std::string a = Result(x.dims, DType::kInt64);
    const std::string b = NewResult(x.dims, DType::kInt64);
    builder_.AddOp("split2", {{"X", {x.name}}}, {{"A", {a}}, {"B", {b}}}, Tagged(tag));
  }

  void AddSource(int tag) {
    const bool narrow = options_.casts && Chance(50);
    const DType dtype = narrow ? DType::kInt32 : DType::kInt64;
    TestProgram::Attrs attrs = Shaped(tag, {1 + Below(3), 2});
    attrs.emplace_back("dtype", static_cast<int32_t>(dtype));
    builder_.Call(Chance(50) ? "source" : "random", {}, Result({-1, 2}, dtype), attrs);
  }

  void AddShapeOf(int tag) {
    const std::string x = Any().name;
    builder_.Call("shape_of", {x}, Result({-1}, DType::kInt64), Tagged(tag));
  }

  void AddUpdate(int tag) {
    const std::string& param = params_[Below(static_cast<int>(params_.size()))];
    builder_.AddOp("update", {{"Param", {param}}, {"X", {Any().name}}}, {{"ParamOut", {param}}},
                   Tagged(tag));
  }

  void AddDynamic(int tag) {
    const std::string x = Any().name;
    if (Chance(50)) {
      builder_.Call("dynamic", {x}, Result({-1}, DType::kInt64), Tagged(tag));
      return;
    }
    const std::string shape = Any().name;
    builder_.AddOp("resize_to", {{"X", {x}}, {"Shape", {shape}}},
                   {{"Out", {Result({-1}, DType::kInt64)}}}, Tagged(tag));
  }

  // In a loop the result may be what X is in the next trip.
  void AddGrowth(int tag) {
    const std::string x = Any().name;
    const std::string y = Any().name;
    const size_t num_values = values_.size();
    const std::string out = Result({-1}, DType::kInt64);
    const bool goes_on = values_.size() == num_values && Chance(50);
    builder_.AddOp("grow", {{"X", {goes_on ? out : x}}, {"Y", {y}}}, {{"Out", {out}}}, Tagged(tag));
  }

  void AddRows(int tag) {
    const int kind = rows_.empty() ? 0 : Below(3);
    const auto any = [&] { return rows_[Below(static_cast<int>(rows_.size()))]; };
    if (kind == 2) {
      builder_.Call("from_rows", {any()}, Result({-1}, DType::kInt64), Tagged(tag));
      return;
    }
    const TestProgram::Slots inputs = kind == 0
                                          ? TestProgram::Slots{{"X", {Any().name}}}
                                          : TestProgram::Slots{{"A", {any()}}, {"B", {any()}}};
    const bool rewrites = !rows_.empty() && Chance(40);
    const std::string out = rewrites ? any() : absl::StrCat("rows", next_++);
    if (!rewrites) {
      builder_.DeclareRows(out, {5, 2});
      rows_.push_back(out);
    }
    builder_.AddOp(kind == 0 ? "to_rows" : "join_rows", inputs, {{"Out", {out}}}, Tagged(tag));
  }

  void AddArray(int tag) {
    const std::string array = absl::StrCat("array", Below(2));
    const bool known = std::count(arrays_.begin(), arrays_.end(), array) > 0;
    if (known && Chance(40)) {
      const std::string type = Chance(50) ? "gather" : "last";
      builder_.AddOp(type, {{"Array", {array}}}, {{"Out", {Result({-1}, DType::kInt64)}}},
                     Tagged(tag));
      return;
    }
    TestProgram::Slots inputs = {{"X", {Any().name}}};
    // An op that changes an array need not say that it reads it.
    if (known && Chance(50)) inputs.push_back({"Array", {array}});
    if (!known) {
      arrays_.push_back(array);
      builder_.DeclareArray(array);
    }
    builder_.AddOp("push", inputs, {{"ArrayOut", {array}}}, Tagged(tag));
  }

  // A loop, a branch or a scan over some ops, which see all values before it and may rewrite them;
  // or the way back through an earlier loop or branch.
  void AddBlock(int tag) {
    if (!loops_.empty() && Chance(40)) return AddWayBack(tag);
    const Seen seen = Now();
    const Value first = Any();
    const int kind = Below(first.dims.empty() ? 2 : 3);
    const Value second = Any();
    const std::vector<Loop> outside = std::exchange(loops_, {});
    ++depth_;
    builder_.Open();
    Loop loop{.block = builder_.current_block(), .steps = absl::StrCat("steps", next_++)};
    if (kind == 2) AddScanInputs(first, second);
    AddOps();
    if (kind == 2) {
      loops_ = outside;
      return CloseScan(tag, seen, first, second);
    }
    loop.values.assign(values_.begin() + static_cast<ptrdiff_t>(seen.values), values_.end());
    loop.arrays.assign(arrays_.begin() + static_cast<ptrdiff_t>(seen.arrays), arrays_.end());
    loop.rows.assign(rows_.begin() + static_cast<ptrdiff_t>(seen.rows), rows_.end());
    loop.inner = std::exchange(loops_, outside);
    Leave(seen);
    builder_.Close(kind == 0 ? "repeat" : "when", {{"Condition", {first.name}}},
                   {{"Steps", {loop.steps}}}, Tagged(tag));
    builder_.DeclareSteps(loop.steps);
    loops_.push_back(std::move(loop));
  }

  void AddOps() {
    for (int ops = 1 + Below(6); ops > 0 && tag_ < options_.num_ops; --ops) AddOp(++tag_);
  }

  // Ops that see what a loop or branch has left, its own values and what was around it.
  void AddWayBack(int tag) {
    const Seen seen = Now();
    const auto chosen = loops_.begin() + Below(static_cast<int>(loops_.size()));
    const Loop loop = std::move(*chosen);
    loops_.erase(chosen);
    std::vector<Loop> outside = std::exchange(loops_, loop.inner);
    ++depth_;
    builder_.Open(loop.block);
    values_.insert(values_.end(), loop.values.begin(), loop.values.end());
    arrays_.insert(arrays_.end(), loop.arrays.begin(), loop.arrays.end());
    rows_.insert(rows_.end(), loop.rows.begin(), loop.rows.end());
    AddOps();
    loops_ = std::move(outside);
    Leave(seen);
    builder_.Close("back", {{"Steps", {loop.steps}}}, {{"StepsOut", {loop.steps}}}, Tagged(tag));
  }

  void AddScanInputs(const Value& rows, const Value& state) {
    Value row{absl::StrCat("row", next_++), rows.dims, rows.dtype};
    row.dims.erase(row.dims.begin());
    Value before{absl::StrCat("state", next_++), state.dims, state.dtype};
    for (const Value& value : {row, before}) {
      builder_.Declare(value.name, value.dims, value.dtype);
      values_.push_back(value);
    }
  }

  void CloseScan(int tag, const Seen& seen, const Value& rows, const Value& state) {
    const std::string row = values_[seen.values].name;
    const std::string before = values_[seen.values + 1].name;
    const std::string after = AddNewState(tag, seen, state);
    const Value made = values_[seen.values + Below(static_cast<int>(values_.size() - seen.values))];
    Leave(seen);
    const Value* old = options_.growth && Chance(50) ? Rewritable({-1}, made.dtype) : nullptr;
    const std::string all = old != nullptr ? old->name : absl::StrCat("v", next_++);
    builder_.Close("scan", {{"Rows", {rows.name}}, {"State", {state.name}}}, {{"Out", {all}}},
                   {{"tag", tag},
                    {"dtype", static_cast<int32_t>(made.dtype)},
                    {"names", std::vector<std::string>{row, before, after, made.name}}});
    if (old != nullptr) return;
    builder_.Declare(all, {-1}, made.dtype);
    values_.push_back({all, {-1}, made.dtype, /*rewritable=*/true});
  }

  // What the scan's state becomes. Returns its name.
  std::string AddNewState(int tag, const Seen& seen, const Value& state) {
    const std::string before = values_[seen.values + 1].name;
    const std::string other = values_[seen.values + Below(2)].name;
    if (options_.growth && !state.image() && state.dtype == DType::kInt64 && Chance(40)) {
      const std::string after = NewResult({-1}, state.dtype);
      builder_.AddOp("grow", {{"X", {before}}, {"Y", {other}}}, {{"Out", {after}}}, Tagged(tag));
      return after;
    }
    const std::string after = NewResult(state.dims, state.dtype);
    builder_.Call("mix", {before, other}, after, Tagged(tag));
    return after;
  }

  // What was made in the block is not seen behind it.
  void Leave(const Seen& seen) {
    values_.resize(seen.values);
    arrays_.resize(seen.arrays);
    rows_.resize(seen.rows);
    --depth_;
  }

  std::mt19937_64 random_;
  const RandomGraphOptions options_;
  TestProgram builder_;
  std::vector<Value> values_;
  std::vector<std::string> params_;
  std::vector<std::string> arrays_;
  std::vector<std::string> rows_;
  std::vector<Loop> loops_;  // of the current block that no way back has been through
  int next_ = 0;
  int tag_ = 0;
  int depth_ = 0;
};

Tensor RandomTensor(std::mt19937_64& random, const Shape& shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.numel()));
  for (int64_t& value : values) value = static_cast<int64_t>(random());
  return Tensor::Of<int64_t>(shape, values);
}

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return GraphMaker(seed, options).Make();
}

std::vector<Tensor> RandomFeeds(uint64_t seed, const RandomGraphOptions& options, int64_t rows) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> feeds;
  for (int i = 0; i < options.num_feeds; ++i) {
    const bool image = options.images && i == options.num_feeds - 1;
    feeds.push_back(RandomTensor(random, image ? Shape{rows, 3, 2, 5} : Shape{rows, i + 2}));
  }
  return feeds;
}

Tensor RandomParameter(uint64_t seed, int index) {
  std::mt19937_64 random(seed * 31 + static_cast<uint64_t>(index));
  return RandomTensor(random, {4});
}

std::shared_ptr<Scope> RandomScope(uint64_t seed, const RandomGraph& graph) {
  auto scope = std::make_shared<Scope>();
  for (size_t i = 0; i < graph.params.size(); ++i) {
    scope->FindOrCreate(graph.params[i])->tensor = RandomParameter(seed, static_cast<int>(i));
  }
  return scope;
}

}  // namespace interp::testing
