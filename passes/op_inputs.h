// What an op reads, for passes that understand some of its inputs and no others.
#pragma once

#include <initializer_list>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/program.h"

namespace interp {

// Whether other inputs than these slots have no arguments.
bool ReadsOnly(const Op& op, std::initializer_list<absl::string_view> slots);

// The argument of input `name` of an op that reads nothing else.
std::optional<VarId> OnlyInput(const Op& op, absl::string_view name = "X");

// The axis of channels of an image of rank 4, as attribute `name` of a convolution or the like
// says.
int64_t ChannelAxisOf(const Op& op, absl::string_view name = "data_format");

}  // namespace interp
