// teacher_student_sigmoid_loss: cross entropy of sigmoid(X) with a click and, where there is one,
// with the value of a teacher; both are in Label:
//
//   below -1       no click, no teacher
//   [-1, 0)        click, no teacher
//   [0, 1)         no click, the teacher says Label
//   from 1         click, the teacher says Label - 1
#include <cmath>

#include "kernels/loss/loss_attrs.h"
#include "kernels/loss/pair_loss.h"

namespace interp {
namespace {

struct TeacherStudent {
  static constexpr PairLossSlots kSlots = {"X", "Label", "Y", /*column=*/true};

  template <typename T>
  T operator()(T x, T label) const {
    const T none = std::max(x, T{0}) + std::log(T{1} + std::exp(-std::abs(x)));
    if (label < -1) return none;
    if (label < 0) return none - x;
    return none + none - x * label;
  }
};

INTERP_REGISTER_OP(PairLossDef<TeacherStudent>("teacher_student_sigmoid_loss",
                                               PairLossKernels<TeacherStudent, float, double>(),
                                               {.inputs = {"X", "Label", "Y@GRAD"},
                                                .outputs = {"X@GRAD"}}));

}  // namespace
}  // namespace interp
