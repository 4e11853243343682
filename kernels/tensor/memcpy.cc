// memcpy_h2d, memcpy_d2h: see core/device/memcpy.h, where plans for devices need them, too.
#include "core/device/memcpy.h"

namespace interp {
namespace {

INTERP_REGISTER_OP(MemcpyHostToDevice());
INTERP_REGISTER_OP(MemcpyDeviceToHost());

}  // namespace
}  // namespace interp
