#include "core/program.h"

#include "absl/hash/hash.h"

namespace interp {
namespace {

template <typename T>
const T* FindByName(const std::vector<T>& items, absl::string_view name) {
  for (const T& item : items) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

}  // namespace

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

bool AttrValue::operator==(const AttrValue& other) const {
  return static_cast<const AttrVariant&>(*this) == static_cast<const AttrVariant&>(other);
}

const Slot* Op::FindInput(absl::string_view name) const { return FindByName(inputs, name); }
const Slot* Op::FindOutput(absl::string_view name) const { return FindByName(outputs, name); }
const Attr* Op::FindAttr(absl::string_view name) const {
  // From the back: Paddle 2.6 lists some attributes twice, and the last one counts there.
  for (auto it = attrs.rbegin(); it != attrs.rend(); ++it) {
    if (it->name == name) return &*it;
  }
  return nullptr;
}

VarId Program::Intern(absl::string_view name) {
  for (uint64_t key = absl::HashOf(name);; ++key) {
    const auto [it, added] = ids_.try_emplace(key, static_cast<VarId>(names.size()));
    if (added) {
      names.emplace_back(name);
      return it->second;
    }
    if (names[it->second] == name) return it->second;
  }
}

VarId Program::Find(absl::string_view name) const {
  for (uint64_t key = absl::HashOf(name);; ++key) {
    const auto it = ids_.find(key);
    if (it == ids_.end()) return -1;
    if (names[it->second] == name) return it->second;
  }
}

std::vector<int32_t> VarPositions(const Program& program, const Block& block) {
  std::vector<int32_t> positions(program.names.size(), -1);
  for (size_t i = 0; i < block.vars.size(); ++i) {
    positions[block.vars[i].id] = static_cast<int32_t>(i);
  }
  return positions;
}

}  // namespace interp
