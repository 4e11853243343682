#include "tests/testing/random_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/testing/program_builder.h"

namespace interp::testing {
namespace {

using Dims = ProgramBuilder::Dims;

struct Value {
  std::string name;
  Dims dims;  // as declared
  DType dtype;
  bool rewritable = false;
  bool image() const { return dims.size() == 4; }
};

class GraphMaker {
 public:
  GraphMaker(uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options), builder_(DType::kInt64) {}

  RandomGraph Make() {
    DeclareInputs();
    for (int tag = 1; tag <= options_.num_ops; ++tag) AddOp(tag);
    RandomGraph graph;
    for (int i = 0; i < options_.num_fetches; ++i) builder_.Fetch(Any().name);
    graph.program = builder_.Build();
    if (options_.num_devices > 0) Place(graph.program);
    graph.params = params_;
    graph.num_ops = options_.num_ops;
    return graph;
  }

 private:
  // Uniform in [0, n).
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

  void Place(Program& program) {
    for (Op& op : program.blocks[0].ops) {
      if (Chance(30)) continue;  // where the plan's options say
      const int device = Below(options_.num_devices + 1) - 1;
      const std::string place = device < 0 ? "cpu" : absl::StrCat("sim:", device);
      op.attrs.push_back({"op_device", place, ""});
      if (Chance(15)) {
        op.attrs.push_back({"execution_stream", absl::StrCat("own", Below(2)), ""});
      }
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
    if (options_.rewrites && Chance(12)) {
      const Value* old = AnyThat([&](const Value& value) {
        return value.rewritable && !value.image() && dims.size() != 4 && value.dtype == dtype &&
               value.dims.size() == dims.size();
      });
      if (old != nullptr) return old->name;
    }
    return NewResult(std::move(dims), dtype);
  }
  std::string NewResult(Dims dims, DType dtype) {
    Value value{absl::StrCat("v", next_++), std::move(dims), dtype, /*rewritable=*/true};
    builder_.Declare(value.name, value.dims, value.dtype);
    values_.push_back(value);
    return value.name;
  }

  static ProgramBuilder::Attrs Tagged(int tag) { return {{"tag", tag}}; }
  static ProgramBuilder::Attrs Shaped(int tag, std::vector<int32_t> shape) {
    return {{"tag", tag}, {"shape", std::move(shape)}};
  }

  void AddOp(int tag) {
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
    std::vector<std::string> inputs = {first.name};
    const bool prefers = Chance(50);
    if (const Value* second = prefers ? nullptr : AnyThat(is_image)) inputs.push_back(second->name);
    builder_.Call(prefers ? "image" : "follow", inputs, Result(first.dims, first.dtype),
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
    ProgramBuilder::Attrs attrs = Shaped(tag, {1 + Below(3), 2});
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

  void AddArray(int tag) {
    const std::string array = absl::StrCat("array", Below(2));
    const bool known = std::count(arrays_.begin(), arrays_.end(), array) > 0;
    if (known && Chance(40)) {
      builder_.AddOp("gather", {{"Array", {array}}}, {{"Out", {Result({-1}, DType::kInt64)}}},
                     Tagged(tag));
      return;
    }
    ProgramBuilder::Slots inputs = {{"X", {Any().name}}};
    if (known) inputs.push_back({"Array", {array}});
    if (!known) arrays_.push_back(array);
    builder_.DeclareArray(array).AddOp("push", inputs, {{"ArrayOut", {array}}}, Tagged(tag));
  }

  std::mt19937_64 random_;
  const RandomGraphOptions options_;
  ProgramBuilder builder_;
  std::vector<Value> values_;
  std::vector<std::string> params_;
  std::vector<std::string> arrays_;
  int next_ = 0;
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
