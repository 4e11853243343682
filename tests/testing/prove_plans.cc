// Linked into every test program: each plan that a test builds is proved, and each program checked
// after each pass.
#include "interpreter/verify/verify_plan.h"
#include "passes/pipeline.h"

namespace interp::testing {
namespace {

[[maybe_unused]] const bool kSwitchedOn = (ProveBuiltPlans(true), VerifyPasses(true), true);

}  // namespace
}  // namespace interp::testing
