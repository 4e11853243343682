// XmlText: what pictures in SVG write of names that users chose.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace interp {

// The text as it stands in an element or in an attribute of XML.
std::string XmlText(absl::string_view text);

}  // namespace interp
