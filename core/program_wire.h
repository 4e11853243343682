// Attributes and variables as protobuf messages. Private to program_load.cc and program_save.cc.
#pragma once

#include <string>

#include "core/program.h"
#include "core/status.h"
#include "proto/framework.pb.h"

namespace interp {

// REQUIRES: desc.IsInitialized().
Attr AttrFromProto(const proto::OpDesc::Attr& desc);

// Writes an attribute into `desc`, which is empty.
void AttrToProto(const Attr& attr, proto::OpDesc::Attr* desc);

// Makes `message` what it was when it was serialised, maybe without required fields.
inline void ParsePartial(absl::string_view bytes, google::protobuf::Message* message) {
  message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Reads all of a variable but its name. `wire` is the serialised `desc`, which is kept where the
// fields do not give all of it. Errors: a kind that is an
// element type; dims or a LoD level out of range. REQUIRES: desc.IsInitialized().
absl::StatusOr<Var> VarFromProto(const proto::VarDesc& desc, absl::string_view wire);

// Makes `desc` the message of a variable.
void VarToProto(const Var& var, const std::string& name, proto::VarDesc* desc);

}  // namespace interp
