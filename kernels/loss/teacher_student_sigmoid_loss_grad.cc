// teacher_student_sigmoid_loss_grad: the derivative, and 0 where X is not between
// soft_max_lower_bound and soft_max_up_bound.
#include <cmath>

#include "kernels/loss/pair_loss_grad.h"

namespace interp {
namespace {

struct BoundsAttrs {
  float up = 15;
  float low = -15;

  static BoundsAttrs Read(AttrReader& reader) {
    return {reader.Float("soft_max_up_bound", 15), reader.Float("soft_max_lower_bound", -15)};
  }
};

struct TeacherStudentGrad : BoundsAttrs {
  using Attrs = BoundsAttrs;
  static constexpr PairLossGradSlots kSlots = {"X", "Label", "Y@GRAD", "X@GRAD"};

  template <typename T>
  T operator()(T x, T label, T grad) const {
    if (x >= up || x <= low) return T{0};
    const T p = T{1} / (T{1} + std::exp(-x));
    const T slope = label < -1 ? p : (label < 0 ? p - 1 : 2 * p - label);
    return slope * grad;
  }
};

INTERP_REGISTER_OP(PairLossGradDef<TeacherStudentGrad>("teacher_student_sigmoid_loss_grad"));

}  // namespace
}  // namespace interp
