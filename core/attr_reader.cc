#include "core/attr_reader.h"

#include <limits>
#include <optional>

#include "core/base/overloaded.h"

namespace interp {
namespace {

std::optional<int64_t> AsInteger(const AttrValue& value) {
  return std::visit(Overloaded{[](int32_t v) { return std::optional<int64_t>(v); },
                               [](int64_t v) { return std::optional<int64_t>(v); },
                               [](bool v) { return std::optional<int64_t>(v); },
                               [](const Scalar& v) -> std::optional<int64_t> {
                                 if (const auto* i = std::get_if<int64_t>(&v.value)) return *i;
                                 if (const auto* b = std::get_if<bool>(&v.value)) return *b;
                                 return std::nullopt;
                               },
                               [](const auto&) -> std::optional<int64_t> { return std::nullopt; }},
                    value);
}

std::optional<double> AsDouble(const AttrValue& value) {
  if (const auto* f = std::get_if<float>(&value)) return *f;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* s = std::get_if<Scalar>(&value)) {
    if (const auto* d = std::get_if<double>(&s->value)) return *d;
  }
  if (const std::optional<int64_t> i = AsInteger(value)) return static_cast<double>(*i);
  return std::nullopt;
}

// Copies list kinds whose elements convert to To, floats to floats alone; a Scalar list converts
// element by element.
template <typename To>
std::optional<std::vector<To>> AsList(const AttrValue& value) {
  constexpr bool kFloatsAllowed = std::is_floating_point_v<To>;
  std::vector<To> out;
  const auto copy = [&out](const auto& list) {
    for (const auto v : list) out.push_back(static_cast<To>(v));
    return true;
  };
  const bool ok =
      std::visit(Overloaded{[&](const std::vector<int32_t>& v) { return copy(v); },
                            [&](const std::vector<int64_t>& v) { return copy(v); },
                            [&](const std::vector<bool>& v) { return copy(v); },
                            [&](const std::vector<float>& v) { return kFloatsAllowed && copy(v); },
                            [&](const std::vector<double>& v) { return kFloatsAllowed && copy(v); },
                            [&](const std::vector<Scalar>& v) {
                              for (const Scalar& s : v) {
                                const std::optional<double> d = AsDouble(AttrValue(s));
                                const std::optional<int64_t> i = AsInteger(AttrValue(s));
                                if (i.has_value()) {
                                  out.push_back(static_cast<To>(*i));
                                } else if (d.has_value() && kFloatsAllowed) {
                                  out.push_back(static_cast<To>(*d));
                                } else {
                                  return false;
                                }
                              }
                              return true;
                            },
                            [](const auto&) { return false; }},
                 value);
  if (!ok) return std::nullopt;
  return out;
}

constexpr absl::string_view kKindNames[] = {
    "INT",  "FLOAT",  "STRING", "INTS",     "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK",
    "LONG", "BLOCKS", "LONGS",  "FLOAT64S", "VAR",    "VARS",    "FLOAT64", "SCALAR",   "SCALARS"};

std::string WrongKind(const Attr& attr, absl::string_view expected) {
  return absl::StrCat("attribute '", attr.name, "' is of kind ", kKindNames[attr.value.index()],
                      ", expected ", expected);
}

// The value of exactly that kind.
template <typename T>
std::optional<T> As(const AttrValue& value) {
  const T* const found = std::get_if<T>(&value);
  return found == nullptr ? std::nullopt : std::optional<T>(*found);
}

// What `convert` makes of the attribute's value, a std::optional; `fallback` where there is none,
// or no attribute.
template <typename T, typename Convert>
T Read(AttrReader& reader, absl::string_view name, T fallback, absl::string_view expected,
       const Convert& convert) {
  const Attr* const attr = reader.op().FindAttr(name);
  if (attr == nullptr) return fallback;
  std::optional<T> value = convert(attr->value);
  if (!value.has_value()) reader.Fail(WrongKind(*attr, expected));
  return std::move(value).value_or(std::move(fallback));
}

}  // namespace

std::vector<std::string> AttrReader::InputNames(absl::string_view slot) const {
  std::vector<std::string> names;
  const Slot* const found = op_.FindInput(slot);
  if (found == nullptr) return names;
  for (const VarId id : found->args) {
    names.push_back(program_ != nullptr ? program_->NameOf(id) : "");
  }
  return names;
}

void AttrReader::Fail(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

bool AttrReader::Bool(absl::string_view name, bool fallback) {
  return Long(name, fallback ? 1 : 0) != 0;
}

int32_t AttrReader::Int(absl::string_view name, int32_t fallback) {
  const int64_t v = Long(name, fallback);
  if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
    Fail(absl::StrCat("attribute '", name, "' is ", v, ", which does not fit into 32 bits"));
    return fallback;
  }
  return static_cast<int32_t>(v);
}

int64_t AttrReader::Long(absl::string_view name, int64_t fallback) {
  return Read(*this, name, fallback, "an integer", AsInteger);
}

float AttrReader::Float(absl::string_view name, float fallback) {
  return static_cast<float>(Double(name, fallback));
}

double AttrReader::Double(absl::string_view name, double fallback) {
  return Read(*this, name, fallback, "a number", AsDouble);
}

std::string AttrReader::String(absl::string_view name, absl::string_view fallback) {
  return Read(*this, name, std::string(fallback), "STRING", As<std::string>);
}

std::vector<int64_t> AttrReader::Ints(absl::string_view name, std::vector<int64_t> fallback) {
  return Read(*this, name, std::move(fallback), "a list of integers", AsList<int64_t>);
}

std::vector<float> AttrReader::Floats(absl::string_view name, std::vector<float> fallback) {
  return Read(*this, name, std::move(fallback), "a list of numbers", AsList<float>);
}

std::vector<double> AttrReader::Doubles(absl::string_view name, std::vector<double> fallback) {
  return Read(*this, name, std::move(fallback), "a list of numbers", AsList<double>);
}

std::vector<std::string> AttrReader::Strings(absl::string_view name) {
  using Texts = std::vector<std::string>;
  return Read(*this, name, Texts(), "STRINGS", As<Texts>);
}

DType AttrReader::Type(absl::string_view name, DType fallback) {
  const int32_t code = Int(name, -1);
  if (code == -1) return fallback;
  const std::optional<DType> dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    Fail(absl::StrCat("attribute '", name, "' is ", code, ", no element type"));
  return dtype.value_or(fallback);
}

}  // namespace interp
