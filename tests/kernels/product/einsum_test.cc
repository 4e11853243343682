// Holds einsum to sums element by element: equations of attention, and made-up ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/kernels/op_runs.h"

namespace interp::einsum_test {
namespace {

using testing::Numbers;
using testing::OpRun;
using testing::OutputsOf;

using Sizes = std::map<char, int64_t>;

Shape ShapeOf(const std::string& term, const Sizes& sizes) {
  Shape shape;
  for (const char letter : term) shape.push_back(sizes.at(letter));
  return shape;
}

// Where the element that `indices` name lies.
int64_t Place(const std::string& term, const Sizes& sizes, const Sizes& indices) {
  int64_t place = 0;
  for (const char letter : term) place = place * sizes.at(letter) + indices.at(letter);
  return place;
}

struct Equation {
  std::vector<std::string> operands;
  std::string out;
  Sizes sizes;

  std::string text() const { return absl::StrCat(absl::StrJoin(operands, ","), "->", out); }
};

Equation Parsed(const std::string& text, const Sizes& sizes) {
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  return {absl::StrSplit(sides[0], ','), sides[1], sizes};
}

std::vector<double> Expected(const Equation& equation, const std::vector<Tensor>& operands) {
  Sizes indices;
  for (const auto& [letter, size] : equation.sizes) indices[letter] = 0;
  std::vector<double> sums(ShapeOf(equation.out, equation.sizes).numel());
  while (true) {
    double product = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      product *=
          double{operands[i].data<float>()[Place(equation.operands[i], equation.sizes, indices)]};
    }
    sums[Place(equation.out, equation.sizes, indices)] += product;
    auto letter = indices.begin();
    for (; letter != indices.end(); ++letter) {
      if (++letter->second < equation.sizes.at(letter->first)) break;
      letter->second = 0;
    }
    if (letter == indices.end()) return sums;
  }
}

void ExpectSums(const Equation& equation, int threads = 1) {
  SCOPED_TRACE(absl::StrCat(equation.text(), " on ", threads, " threads"));
  OpRun run = {"einsum", {}, {"Out"}, absl::StrCat("equation=\"", equation.text(), "\"")};
  std::vector<Tensor> operands;
  for (const std::string& term : equation.operands) {
    operands.push_back(
        Numbers(ShapeOf(term, equation.sizes), static_cast<uint32_t>(operands.size()) + 5));
    run.inputs.emplace_back("Operands", operands.back());
  }
  CoreOptions options;
  options.num_threads = threads;
  const Tensor out = OutputsOf(run, options)[0];
  ASSERT_EQ(out.shape, ShapeOf(equation.out, equation.sizes));
  const std::vector<double> want = Expected(equation, operands);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(out.data<float>()[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << "element " << i;
  }
}

TEST(EinsumTest, HeadsThatNobodyTransposed) {
  const Sizes sizes = {{'b', 3}, {'i', 14}, {'j', 35}, {'n', 2}, {'d', 9}};
  for (const char* text :
       {"ibnd,jbnd->bnij", "bnij,jbnd->ibnd", "bind,bjnd->bnij", "bnij,bjnd->bind",
        "bnij,jbnd->nidb", "bind,jnd->bnij", "ibnd,jnd->bijn", "bnij,ibnd->jbnd"}) {
    Equation equation = Parsed(text, sizes);
    std::erase_if(equation.sizes, [&](const auto& size) {
      return equation.text().find(size.first) == std::string::npos;
    });
    ExpectSums(equation);
    ExpectSums(equation, /*threads=*/3);
  }
}

TEST(EinsumTest, WeightsOfSeveralDims) {
  ExpectSums(Parsed("ibh,hnd->ibnd", {{'i', 7}, {'b', 3}, {'h', 20}, {'n', 3}, {'d', 16}}));
  ExpectSums(Parsed("ibnd,hnd->ibh", {{'i', 7}, {'b', 3}, {'h', 20}, {'n', 3}, {'d', 16}}));
  ExpectSums(Parsed("ibnd,hnd->bhi", {{'i', 7}, {'b', 3}, {'h', 20}, {'n', 3}, {'d', 16}}));
}

// More of a sum than is multiplied at once, and a dim that repeats the product.
TEST(EinsumTest, LongSumsAndRepeatedProducts) {
  ExpectSums(Parsed("nki,nkj->nij", {{'n', 2}, {'k', 600}, {'i', 5}, {'j', 300}}));
  ExpectSums(Parsed("bind,tnd->bnit", {{'b', 3}, {'i', 33}, {'n', 2}, {'t', 5}, {'d', 6}}));
  ExpectSums(Parsed("ind,btnd->bint", {{'b', 2}, {'i', 5}, {'n', 2}, {'t', 40}, {'d', 6}}));
}

TEST(EinsumTest, DimsInAnotherOrder) {
  ExpectSums(Parsed("bnij->jbin", {{'b', 2}, {'n', 3}, {'i', 4}, {'j', 5}}));
  ExpectSums(Parsed("bnij->jn", {{'b', 2}, {'n', 3}, {'i', 4}, {'j', 5}}));
}

// A term of some of the letters in any order.
std::string RandomTerm(std::mt19937& random, const std::string& letters, size_t most) {
  std::string term;
  for (const char letter : letters) {
    if (random() % 2 == 0 && term.size() < most) term.push_back(letter);
  }
  std::shuffle(term.begin(), term.end(), random);
  return term;
}

TEST(EinsumTest, MadeUpEquations) {
  std::mt19937 random(11);
  const std::string letters = "abcdef";
  for (int i = 0; i < 150; ++i) {
    Equation equation;
    equation.operands = {RandomTerm(random, letters, 4), RandomTerm(random, letters, 4)};
    std::string known = equation.operands[0] + equation.operands[1];
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    equation.out = RandomTerm(random, known, 5);
    if (equation.operands[0].empty() || equation.operands[1].empty()) continue;
    constexpr int64_t kSizes[] = {1, 2, 3, 5, 7, 33};
    for (const char letter : known) equation.sizes[letter] = kSizes[random() % 6];
    int64_t steps = 1;
    for (const auto& [letter, size] : equation.sizes) steps *= size;
    if (steps < 200'000) ExpectSums(equation, /*threads=*/1 + i % 2);
  }
}

}  // namespace
}  // namespace interp::einsum_test
