// Program -> text, JSON or DOT. The same program always gives the same characters: no addresses, no
// times, everything in program order; so dumps can be diffed and serve as expected results of
// tests.
//
// The text form is also an input form (program_parse.h). One variable or op a line:
//
//   program version=2006002
//   block 0
//     var x float32[-1,3,32,32] check_feed
//     var w float32[8,3,3,3] param
//     var y float32[-1,8,30,30]
//     conv2d(Input=x, Filter=w) -> (Output=y) {strides=[1,1], groups=1}
//     relu(X=y) -> (Out=z) inplace(X->Out)
//   block 1 parent=0
//
// Variables: the kind (omitted for LOD_TENSOR), element type and dims (-1: unknown), `lod=N`, then
// flags: `param` (a persistable parameter), `persistable`, `parameter` (not persistable, as no
// Paddle writes it), `check_feed`, `stop_gradient`.
// Slots: `X=a`, `X=[a, b]`, `X=[]`. Attributes: integers, floats (always with a point or an
// exponent), strings in quotes, true/false and lists of them are INT, FLOAT, STRING, BOOLEAN and
// their lists; the other kinds have a prefix: long: longs: float64: float64s: block: blocks: var:
// vars: scalar: scalars:, and so have empty lists (floats:[] strings:[] bools:[]) but INTS.
// Names are bare when made of letters, digits and _.@/:$+-|~* only, else quoted with C escapes.
//
// Left out of all forms: fields of the file that interp does not know, and attributes that only say
// where an op came from (op_callstack, op_role, op_role_var, op_namescope, and op_device when
// empty).
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/json_writer.h"
#include "core/program.h"

namespace interp {

std::string ToText(const Program& program);

// ToText with the attributes op_role, where an op is not of the forward part, and op_role_var:
// cutting a training program into parts takes them.
std::string SaveProgramText(const Program& program);

// {"version":V, "blocks":[{"idx", "parent", "vars":[...], "ops":[...]}]}; see the text form for
// what is in it. Infinities and NaN are strings.
std::string ToJson(const Program& program);

// A graph for `dot`: ops are boxes, edges lead from the op that wrote a variable to the ops that
// read it and carry its name; what no op of the block wrote before (parameters) is an ellipse. One
// cluster a block.
std::string ToDot(const Program& program);

// The line of one op in the text form, without indentation.
std::string ToText(const Program& program, const Op& op);

// "block 0, op #17 conv2d", the place of an op in messages.
std::string DescribeOp(const Program& program, size_t block, size_t op);

// "lod_tensor", "feed_minibatch", ...; empty for a number that is no kind of variable.
absl::string_view Name(VarKind kind);
std::optional<VarKind> VarKindFromName(absl::string_view name);

// Prefix of an attribute value in the text form, by index of AttrValue's alternatives. Index 0 is
// "int", and so on.
absl::string_view AttrKindPrefix(size_t kind);

// A value as the text form writes it: "[1,1]", "long:3", "\"NCHW\"".
std::string AttrValueText(const AttrValue& value);

// The object that the JSON form has under "attrs".
void WriteAttrs(JsonWriter& json, const Op& op);

// True for attributes that only say where an op came from (see above).
bool IsProvenanceAttr(const Attr& attr);

// The name of variable `id`, also when there is no such variable: dumps are made of broken
// programs, too.
std::string NameForDump(const Program& program, VarId id);

// `name` as the text form writes it: bare, or in quotes with C escapes.
std::string NameText(absl::string_view name);

// True for the characters of bare names. "->" ends a name all the same.
bool IsBareNameChar(char c);

}  // namespace interp
