// All of interp that programs use: one include.
//
//   #include <interp/interp.hpp>
//
// The headers below, and what they include, are all that is installed; each of them may also be
// included by its own path. C: interp/interp.h.
#pragma once

// IWYU pragma: begin_exports

// Versions.
#include "interp/version.h"

// Running a program: a predictor for many threads, or a core and its plan.
#include "interpreter/executor.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_model.h"
#include "interpreter/load_ops.h"
#include "interpreter/predictor.h"

// Programs and their values: read, written, built.
#include "core/io/file.h"
#include "core/io/npy.h"
#include "core/io/npz.h"
#include "core/io/params.h"
#include "core/program_builder.h"
#include "core/program_load.h"
#include "core/program_parse.h"
#include "core/program_print.h"
#include "core/resource/random_state_file.h"

// Training.
#include "interpreter/train/checkpoint.h"
#include "interpreter/train/trainer.h"
#include "passes/train/append_backward.h"
#include "passes/train/learning_rate.h"
#include "passes/train/minimize.h"
#include "passes/train/recompute.h"

// GPUs: docs/cuda.md.
#include "core/device/device_maker.h"
#include "interpreter/load_cuda.h"

// Looking at plans and runs.
#include "interpreter/inspect/instruction_cost.h"
#include "interpreter/inspect/liveness_bound.h"
#include "interpreter/inspect/memory_estimate.h"
#include "interpreter/inspect/plan_print.h"
#include "interpreter/inspect/plan_print_html.h"
#include "interpreter/inspect/stall_watch.h"
#include "interpreter/inspect/trace.h"
#include "interpreter/plan_file/plan_file.h"
#include "interpreter/verify/verify_plan.h"

// Ops of one's own: docs/add_an_op.md. What splits loops over threads is included where it is used,
// as it has pragmas of OpenMP: kernels/util/parallel_for.h.
#include "core/gradient.h"
#include "core/op_def.h"
#include "core/resource/distributions.h"

// Passes of one's own: docs/add_a_pass.md.
#include "core/each_argument.h"
#include "core/sub_blocks.h"
#include "passes/fresh_var.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/symbolic_shapes.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/pass.h"
#include "passes/pipeline.h"
#include "passes/var_uses.h"
#include "passes/verify.h"

// Arrays without a program, and a store of them: docs/arrays.md, docs/kvstore.md.
#include "core/array/array_file.h"
#include "core/array/array_runtime.h"
#include "core/array/invoke.h"
#include "core/array/tape.h"
#include "core/kvstore/kvstore.h"
#include "interpreter/array_run.h"

// The dependency engine by itself: docs/engine.md.
#include "core/engine/engine.h"
#include "core/engine/engine_trace.h"

// IWYU pragma: end_exports
