// Runs an op that is not part of interp: 2 * x + x.
#include <interp/interp.hpp>
#include <iostream>

absl::StatusOr<float> Run() {
  INTERP_ASSIGN_OR_RETURN(interp::Program program,
                          interp::ParseProgram("program version=0\n"
                                               "block 0\n"
                                               "  var x float32[1]\n"
                                               "  var y float32[1]\n"
                                               "  axpy(X=x, Y=x) -> (Out=y) {alpha=2.0}\n"));
  INTERP_ASSIGN_OR_RETURN(auto core,
                          interp::InterpreterCore::Create(program, {"x"}, {"y"}, nullptr));
  const float x = 5;
  INTERP_ASSIGN_OR_RETURN(const std::vector<interp::Tensor> fetched,
                          core->Run({interp::Tensor::Borrow(interp::DType::kFloat32, {1}, &x)}));
  return *fetched[0].data<float>();
}

int main() {
  const absl::StatusOr<float> y = Run();
  std::cout << (y.ok() ? std::to_string(*y) : std::string(y.status().message())) << "\n";
  return y.ok() && *y == 15 ? 0 : 1;
}
