#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>

#include "core/program_load.h"
#include "core/program_wire.h"

namespace interp {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Appends a length-delimited field. Fails beyond 2 GiB.
absl::Status AppendField(int number, absl::string_view payload, std::string* out) {
  if (payload.size() > std::numeric_limits<int32_t>::max()) {
    return ResourceExhausted("the program would have more than 2 GiB");
  }
  uint8_t head[2 * 5];  // two varints of at most 32 bits
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(
      WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(payload.size()), end);
  out->append(reinterpret_cast<const char*>(head), end - head);
  out->append(payload.data(), payload.size());
  return absl::OkStatus();
}

// Serialises the messages of one program; scratch objects are reused.
class Saver {
 public:
  explicit Saver(const Program& program) : program_(program) {}

  absl::StatusOr<std::string> Save() {
    std::string out;
    std::string block_bytes;
    for (const Block& block : program_.blocks) {
      block_bytes.clear();
      INTERP_RETURN_IF_ERROR(SaveBlock(block, &block_bytes));
      INTERP_RETURN_IF_ERROR(
          AppendField(proto::ProgramDesc::kBlocksFieldNumber, block_bytes, &out));
    }
    proto::ProgramDesc rest;
    rest.ParsePartialFromString(program_.wire);
    if (rest.version().version() != program_.version) {
      rest.mutable_version()->set_version(program_.version);
    }
    rest.AppendPartialToString(&out);
    if (out.size() > std::numeric_limits<int32_t>::max()) {
      return ResourceExhausted("the program would have ", out.size(), " bytes, more than 2 GiB");
    }
    return out;
  }

 private:
  // Fields in the order of their numbers, as protobuf writes them.
  absl::Status SaveBlock(const Block& block, std::string* out) {
    proto::BlockDesc head;
    head.set_idx(block.idx);
    head.set_parent_idx(block.parent_idx);
    head.AppendToString(out);
    for (const Var& var : block.vars) {
      INTERP_RETURN_IF_ERROR(CheckId(var.id));
      VarToProto(var, program_.NameOf(var.id), &var_);
      var_.SerializePartialToString(&scratch_);
      INTERP_RETURN_IF_ERROR(AppendField(proto::BlockDesc::kVarsFieldNumber, scratch_, out));
    }
    for (const Op& op : block.ops) {
      INTERP_RETURN_IF_ERROR(FillOp(op));
      op_.SerializePartialToString(&scratch_);
      INTERP_RETURN_IF_ERROR(AppendField(proto::BlockDesc::kOpsFieldNumber, scratch_, out));
    }
    proto::BlockDesc tail;
    if (block.has_forward_block_idx || block.forward_block_idx != tail.forward_block_idx()) {
      tail.set_forward_block_idx(block.forward_block_idx);
    }
    tail.AppendPartialToString(out);
    out->append(block.unknown_fields);
    return absl::OkStatus();
  }

  absl::Status FillOp(const Op& op) {
    ParsePartial(op.unknown_fields.view(), &op_);
    op_.set_type(op.type);
    if (op.has_is_target || op.is_target) op_.set_is_target(op.is_target);
    for (const Attr& attr : op.attrs) AttrToProto(attr, op_.add_attrs());
    for (const Slot& slot : op.inputs) INTERP_RETURN_IF_ERROR(FillSlot(slot, op_.add_inputs()));
    for (const Slot& slot : op.outputs) INTERP_RETURN_IF_ERROR(FillSlot(slot, op_.add_outputs()));
    return absl::OkStatus();
  }

  absl::Status FillSlot(const Slot& slot, proto::OpDesc::Var* desc) const {
    ParsePartial(slot.unknown_fields.view(), desc);
    desc->set_parameter(slot.name);
    for (const VarId id : slot.args) {
      INTERP_RETURN_IF_ERROR(CheckId(id));
      desc->add_arguments(program_.NameOf(id));
    }
    return absl::OkStatus();
  }

  absl::Status CheckId(VarId id) const {
    if (id >= 0 && static_cast<size_t>(id) < program_.names.size()) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("the program uses variable id ", id, " of ", program_.names.size()));
  }

  const Program& program_;
  proto::OpDesc op_;
  proto::VarDesc var_;
  std::string scratch_;
};

}  // namespace

absl::StatusOr<std::string> SaveProgram(const Program& program) { return Saver(program).Save(); }

}  // namespace interp
