// The dtype an op's kernel is chosen by, and those of its outputs.
#pragma once

#include "core/op_context.h"
#include "core/op_def.h"
#include "core/program.h"

namespace interp {

// The dtype kernels of `def` are chosen by for the op. kUndefined: the inputs do not tell.
// Arguments are in the order of the definition's slots; attributes are parsed by `def.parse`.
DType KernelDType(const OpDef& def, const Op& op, const void* attrs, DTypeContext::Inputs inputs,
                  DTypeContext::Outputs outputs);

// Sets the dtypes of the outputs for a kernel of dtype `kernel`; kUndefined leaves those that the
// definition does not set as they are.
void InferDTypes(const OpDef& def, const void* attrs, DType kernel, DTypeContext::Inputs inputs,
                 DTypeContext::Outputs outputs);

}  // namespace interp
