#include "core/program_load.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/types/span.h"
#include "core/base/annotate.h"
#include "core/base/quoted.h"
#include "core/io/file.h"
#include "core/program_wire.h"
#include "core/sub_blocks.h"

namespace interp {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Takes the payload of one submessage: field number, bytes, their offset in the file.
using Visitor = absl::FunctionRef<absl::Status(int number, absl::string_view, size_t offset)>;

bool IsOneOf(int number, absl::Span<const int> numbers) {
  for (const int n : numbers) {
    if (n == number) return true;
  }
  return false;
}

RareBytes UnknownFieldsOf(const google::protobuf::Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  std::string bytes;
  if (!unknown.empty()) unknown.SerializeToString(&bytes);
  return bytes;
}

// Walks the fields of one message, which lies at `base` in the file. Length-delimited fields with
// one of `numbers` go to `visit`, the others are appended to `rest` as they are. One level at a
// time, so that an error can tell where in the file it is.
absl::Status WalkFields(absl::string_view bytes, size_t base, absl::Span<const int> numbers,
                        Visitor visit, std::string* rest) {
  const int size = static_cast<int>(bytes.size());
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  while (in.CurrentPosition() < size) {
    const int begin = in.CurrentPosition();
    const auto damaged = [&] {
      return DataLoss("the field at byte ", base + begin, " is damaged or cut off");
    };
    const uint32_t tag = in.ReadTag();
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    if (number == 0) return damaged();
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
        IsOneOf(number, numbers)) {
      uint32_t length = 0;
      if (!in.ReadVarint32(&length)) return damaged();
      const int payload = in.CurrentPosition();
      if (length > static_cast<uint32_t>(size - payload)) {
        return DataLoss("the field at byte ", base + begin, " says ", length, " bytes, but only ",
                        size - payload, " are left");
      }
      in.Skip(static_cast<int>(length));
      INTERP_RETURN_IF_ERROR(visit(number, bytes.substr(payload, length), base + payload));
    } else {
      if (!WireFormatLite::SkipField(&in, tag)) return damaged();
      rest->append(bytes.substr(begin, in.CurrentPosition() - begin).data(),
                   in.CurrentPosition() - begin);
    }
  }
  return absl::OkStatus();
}

// Parses `bytes` into `message`, of which required fields may be missing.
absl::Status ParseBytes(absl::string_view bytes, size_t offset,
                        google::protobuf::Message* message) {
  if (message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  message->Clear();  // what was read of it is not to be trusted
  return DataLoss("the message at byte ", offset, " is damaged");
}

absl::Status CheckRequired(const google::protobuf::Message& message) {
  if (message.IsInitialized()) return absl::OkStatus();
  std::vector<std::string> missing;
  message.FindInitializationErrors(&missing);
  return InvalidArgument("required field '", missing.front(), "' is missing or has a value that ",
                         "does not exist");
}

// Both.
absl::Status Parse(absl::string_view bytes, size_t offset, google::protobuf::Message* message) {
  INTERP_RETURN_IF_ERROR(ParseBytes(bytes, offset, message));
  return CheckRequired(*message);
}

// Whether only the dtype of a tensor is missing: Paddle's backward part leaves that of some
// gradients within loops open. A dtype that does not exist is among the unknown fields.
bool LacksOnlyDType(proto::VarDesc& var) {
  if (!var.has_type() || !var.type().has_lod_tensor() || !var.type().lod_tensor().has_tensor()) {
    return false;
  }
  proto::VarType::TensorDesc& tensor = *var.mutable_type()->mutable_lod_tensor()->mutable_tensor();
  if (tensor.has_data_type() || !tensor.unknown_fields().empty()) return false;
  tensor.set_data_type(proto::VarType::FP32);
  const bool rest = var.IsInitialized();
  tensor.clear_data_type();
  return rest;
}

// --- block structure ---

// A use of block `to` by an attribute of an op of block `from`.
struct BlockUse {
  int32_t to = 0;
  int32_t op = 0;
  const Attr* attr = nullptr;
};

// Checks idx, parents and uses of blocks.
class BlockChecker {
 public:
  explicit BlockChecker(const Program& program)
      : program_(program), uses_(program.blocks.size()), heights_(program.blocks.size(), kNew) {}

  absl::Status Check() {
    if (program_.blocks.empty()) return InvalidArgument("the program has no block");
    INTERP_RETURN_IF_ERROR(CheckParents());
    for (int32_t i = 0; i < size(); ++i) INTERP_RETURN_IF_ERROR(CollectUses(i));
    for (int32_t i = 0; i < size(); ++i) INTERP_RETURN_IF_ERROR(Visit(i, /*depth=*/1));
    return absl::OkStatus();
  }

 private:
  static constexpr int kNew = 0;  // heights are at least 1
  static constexpr int kVisiting = -1;

  int32_t size() const { return static_cast<int32_t>(program_.blocks.size()); }

  absl::Status CheckParents() const {
    std::vector<int> depths(size(), 1);
    for (int32_t i = 0; i < size(); ++i) {
      const Block& block = program_.blocks[i];
      const auto wrong = [&](absl::string_view what, int32_t found, const auto&... expected) {
        return InvalidArgument("block ", i, ": ", what, " is ", found, ", expected ", expected...);
      };
      if (block.idx != i) return wrong("idx", block.idx, i);
      if (i == 0 && block.parent_idx != -1) return wrong("parent_idx", block.parent_idx, "-1");
      if (i > 0 && (block.parent_idx < 0 || block.parent_idx >= i)) {
        return wrong("parent_idx", block.parent_idx, "0 to ", i - 1);
      }
      if (block.forward_block_idx < -1 || block.forward_block_idx >= size()) {
        return wrong("forward_block_idx", block.forward_block_idx, "-1 to ", size() - 1);
      }
      if (i > 0) depths[i] = depths[block.parent_idx] + 1;
      if (depths[i] > kMaxBlockDepth) return TooDeep(i);
    }
    return absl::OkStatus();
  }

  absl::Status CollectUses(int32_t from) {
    const std::vector<Op>& ops = program_.blocks[from].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const Attr& attr : ops[i].attrs) {
        for (const int32_t to : BlocksIn(attr)) {
          const BlockUse use{to, static_cast<int32_t>(i), &attr};
          if (to < 0 || to >= size()) {
            return Wrong(from, use, absl::StrCat("is block ", to, ", but there are ", size()));
          }
          uses_[from].push_back(use);
        }
      }
    }
    return absl::OkStatus();
  }

  // Depth-first over the uses; never deeper than kMaxBlockDepth.
  absl::Status Visit(int32_t block, int depth) {
    if (heights_[block] != kNew) return absl::OkStatus();
    if (depth > kMaxBlockDepth) return TooDeep(block);
    heights_[block] = kVisiting;
    int height = 1;
    for (const BlockUse& use : uses_[block]) {
      if (heights_[use.to] == kVisiting) {
        return Wrong(block, use, absl::StrCat("leads back to block ", use.to));
      }
      INTERP_RETURN_IF_ERROR(Visit(use.to, depth + 1));
      height = std::max(height, heights_[use.to] + 1);
    }
    if (height > kMaxBlockDepth) return TooDeep(block);
    heights_[block] = height;
    return absl::OkStatus();
  }

  absl::Status Wrong(int32_t block, const BlockUse& use, absl::string_view what) const {
    return InvalidArgument(PlaceOf(block, use.op), ": attribute ", Quoted(use.attr->name), " ",
                           what);
  }

  std::string PlaceOf(int32_t block, int32_t op) const {
    return absl::StrCat("block ", block, ", op #", op, " ",
                        absl::Utf8SafeCEscape(program_.blocks[block].ops[op].type));
  }

  static absl::Status TooDeep(int32_t block) {
    return InvalidArgument("block ", block, ": blocks nest deeper than ", kMaxBlockDepth);
  }

  const Program& program_;
  std::vector<std::vector<BlockUse>> uses_;  // by using block
  std::vector<int> heights_;  // by block: longest chain of uses below it, itself included
};

// --- ops and variables ---

class Loader {
 public:
  absl::Status InternNames(absl::Span<const std::string> names);
  absl::StatusOr<Program> Load(absl::string_view bytes);

 private:
  absl::Status LoadBlock(absl::string_view bytes, size_t offset);
  // Room for the variables and ops of a block, so that long lists do not move as they grow.
  absl::Status Reserve(absl::string_view bytes, size_t offset, Block& block);
  absl::Status LoadVar(absl::string_view bytes, size_t offset, Var* var);
  absl::Status LoadOp(absl::string_view bytes, size_t offset, Op* op);
  absl::Status LoadSlots(const google::protobuf::RepeatedPtrField<proto::OpDesc::Var>& slots,
                         absl::string_view direction, std::vector<Slot>* out);

  // Of a variable or an op with a name and a type; damaged files of shorter ones reserve nothing.
  static constexpr size_t kMinPayload = 8;

  Program program_;
  proto::OpDesc op_;                  // reused, so that parsing an op rarely allocates
  proto::VarDesc var_;                // likewise
  std::vector<int32_t> declared_in_;  // by VarId: the last block that declared it, -1 for none
  absl::flat_hash_set<absl::string_view> seen_slots_;
};

absl::Status Loader::InternNames(absl::Span<const std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (program_.Intern(names[i]) != static_cast<VarId>(i)) {
      return InvalidArgument("the name ", Quoted(names[i]), " repeats");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Program> Loader::Load(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("has ", bytes.size(), " bytes; a program has less than 2 GiB");
  }
  const auto visit = [this](int, absl::string_view payload, size_t offset) {
    return Annotate(LoadBlock(payload, offset), absl::StrCat("block ", program_.blocks.size()));
  };
  INTERP_RETURN_IF_ERROR(WalkFields(bytes, /*base=*/0, {proto::ProgramDesc::kBlocksFieldNumber},
                                    visit, &program_.wire));
  proto::ProgramDesc rest;
  INTERP_RETURN_IF_ERROR(Parse(program_.wire, /*offset=*/0, &rest));
  program_.version = rest.version().version();
  INTERP_RETURN_IF_ERROR(BlockChecker(program_).Check());
  return std::move(program_);
}

absl::Status Loader::LoadBlock(absl::string_view bytes, size_t offset) {
  Block block;
  INTERP_RETURN_IF_ERROR(Reserve(bytes, offset, block));
  const auto visit = [&](int number, absl::string_view payload, size_t at) {
    if (number == proto::BlockDesc::kVarsFieldNumber) {
      const absl::Status status = LoadVar(payload, at, &block.vars.emplace_back());
      if (status.ok()) return status;
      const std::string name = var_.has_name() ? absl::StrCat(" ", Quoted(var_.name())) : "";
      return Annotate(status, absl::StrCat("variable #", block.vars.size() - 1, name));
    }
    const absl::Status status = LoadOp(payload, at, &block.ops.emplace_back());
    if (status.ok()) return status;
    const std::string type = absl::Utf8SafeCEscape(op_.type());
    return Annotate(status,
                    absl::StrCat("op #", block.ops.size() - 1, type.empty() ? "" : " ", type));
  };
  std::string rest;
  INTERP_RETURN_IF_ERROR(WalkFields(
      bytes, offset, {proto::BlockDesc::kVarsFieldNumber, proto::BlockDesc::kOpsFieldNumber}, visit,
      &rest));
  proto::BlockDesc desc;
  INTERP_RETURN_IF_ERROR(Parse(rest, offset, &desc));
  block.idx = desc.idx();
  const bool names_itself = program_.blocks.empty() && desc.parent_idx() == 0;
  block.parent_idx = names_itself ? -1 : desc.parent_idx();
  block.forward_block_idx = desc.forward_block_idx();
  block.has_forward_block_idx = desc.has_forward_block_idx();
  desc.unknown_fields().SerializeToString(&block.unknown_fields);
  program_.blocks.push_back(std::move(block));
  return absl::OkStatus();
}

absl::Status Loader::Reserve(absl::string_view bytes, size_t offset, Block& block) {
  size_t vars = 0;
  size_t ops = 0;
  const auto count = [&](int number, absl::string_view payload, size_t) {
    if (payload.size() >= kMinPayload) {
      ++(number == proto::BlockDesc::kVarsFieldNumber ? vars : ops);
    }
    return absl::OkStatus();
  };
  std::string rest;
  INTERP_RETURN_IF_ERROR(WalkFields(
      bytes, offset, {proto::BlockDesc::kVarsFieldNumber, proto::BlockDesc::kOpsFieldNumber}, count,
      &rest));
  block.vars.reserve(vars);
  block.ops.reserve(ops);
  return absl::OkStatus();
}

absl::Status Loader::LoadVar(absl::string_view bytes, size_t offset, Var* var) {
  INTERP_RETURN_IF_ERROR(ParseBytes(bytes, offset, &var_));
  if (!LacksOnlyDType(var_)) INTERP_RETURN_IF_ERROR(CheckRequired(var_));
  INTERP_ASSIGN_OR_RETURN(*var, VarFromProto(var_, bytes));
  var->id = program_.Intern(var_.name());
  declared_in_.resize(program_.names.size(), -1);
  const auto block = static_cast<int32_t>(program_.blocks.size());
  if (std::exchange(declared_in_[var->id], block) == block) {
    return InvalidArgument("is declared twice");
  }
  return absl::OkStatus();
}

absl::Status Loader::LoadOp(absl::string_view bytes, size_t offset, Op* op) {
  INTERP_RETURN_IF_ERROR(Parse(bytes, offset, &op_));
  if (op_.type().empty()) return InvalidArgument("its type is empty");
  op->type = op_.type();
  op->is_target = op_.is_target();
  op->has_is_target = op_.has_is_target();
  op->unknown_fields = UnknownFieldsOf(op_);
  op->attrs.reserve(op_.attrs_size());
  for (const proto::OpDesc::Attr& attr : op_.attrs()) op->attrs.push_back(AttrFromProto(attr));
  INTERP_RETURN_IF_ERROR(LoadSlots(op_.inputs(), "input", &op->inputs));
  return LoadSlots(op_.outputs(), "output", &op->outputs);
}

absl::Status Loader::LoadSlots(const google::protobuf::RepeatedPtrField<proto::OpDesc::Var>& slots,
                               absl::string_view direction, std::vector<Slot>* out) {
  out->reserve(slots.size());
  seen_slots_.clear();
  for (const proto::OpDesc::Var& desc : slots) {
    if (!seen_slots_.insert(desc.parameter()).second) {
      return InvalidArgument(direction, " ", Quoted(desc.parameter()), " is listed twice");
    }
    Slot slot;
    slot.name = desc.parameter();
    slot.args.reserve(desc.arguments_size());
    for (const std::string& name : desc.arguments()) slot.args.push_back(program_.Intern(name));
    slot.unknown_fields = UnknownFieldsOf(desc);
    out->push_back(std::move(slot));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> LoadProgram(absl::string_view bytes) { return Loader().Load(bytes); }

absl::StatusOr<Program> LoadProgram(absl::string_view bytes, absl::Span<const std::string> names) {
  Loader loader;
  INTERP_RETURN_IF_ERROR(loader.InternNames(names));
  return loader.Load(bytes);
}

absl::StatusOr<Program> ReadProgram(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return Annotate(LoadProgram(bytes), path);
}

}  // namespace interp
