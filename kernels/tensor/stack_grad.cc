// stack_grad: X@GRAD[i] = Y@GRAD with index i along `axis`, that dimension dropped.
// unstack_grad: X@GRAD = the gradients Y@GRAD along a new dimension `axis`.
#include "core/op_def.h"
#include "kernels/tensor/stacking.h"
#include "kernels/util/without_lod.h"

namespace interp {
namespace {

using stacking::ReadStackAttrs;
using stacking::StackAttrs;

INTERP_REGISTER_OP(OpDef{
    .type = "stack_grad",
    .inputs = {{"Y@GRAD", kAnyLayout},
               {"X", kOptional | kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD", kVariadic | kOptional}},
    .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
    .infer = stacking::InferUnstack,
    .kernels = MoveKernels(stacking::Unstack),
});

INTERP_REGISTER_OP(OpDef{
    .type = "unstack_grad",
    .inputs = {{"Y@GRAD", kVariadic | kAnyLayout},
               {"X", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<StackAttrs, ReadStackAttrs>,
    .infer = WithoutLod<stacking::InferStack, 0>,
    .kernels = MoveKernels(stacking::Stack),
});

}  // namespace
}  // namespace interp
