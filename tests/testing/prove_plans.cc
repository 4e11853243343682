// Linked into every test program: each plan that a test builds is proved.
#include "interpreter/verify/verify_plan.h"

namespace interp::testing {
namespace {

[[maybe_unused]] const bool kSwitchedOn = (ProveBuiltPlans(true), true);

}  // namespace
}  // namespace interp::testing
