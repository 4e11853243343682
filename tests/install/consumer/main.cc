// Reads a digit from a picture of 28 x 28 floats:  digit_reader MODEL PARAMS IMAGE.npy
#include <algorithm>
#include <interp/interp.hpp>
#include <iostream>
#include <thread>
#include <vector>

absl::Status ReadDigit(const char* model, const char* params, const char* image) {
  INTERP_ASSIGN_OR_RETURN(interp::Program program, interp::ReadProgram(model));
  auto scope = std::make_shared<interp::Scope>();
  INTERP_ASSIGN_OR_RETURN(auto loaded, interp::ReadParams(params, interp::ParamsOf(program)));
  for (auto& [name, tensor] : loaded) scope->FindOrCreate(name)->tensor = std::move(tensor);
  // No names: feed and fetch what the program says.
  INTERP_ASSIGN_OR_RETURN(auto core, interp::InterpreterCore::Create(program, {}, {}, scope));

  INTERP_ASSIGN_OR_RETURN(const interp::Tensor picture, interp::ReadNpy(image));
  std::vector<float> pixels(picture.data<float>(), picture.data<float>() + picture.numel());
  // Shares our memory: `pixels` stays as it is until Run returns.
  const auto feed = interp::Tensor::Borrow(interp::DType::kFloat32, {1, 1, 28, 28}, pixels.data());

  // A clone shares plan, parameters and packed weights, and may run while `core` does.
  auto clone = core->Clone();
  absl::StatusOr<std::vector<interp::Tensor>> there;
  std::thread other([&] { there = clone->Run({feed}); });
  absl::StatusOr<std::vector<interp::Tensor>> here = core->Run({feed});
  other.join();
  if (!here.ok() || !there.ok()) return here.ok() ? there.status() : here.status();

  for (const auto& fetches : {*here, *there}) {
    const float* p = fetches[0].data<float>();
    std::cout << "digit " << std::max_element(p, p + 10) - p << "\n";
  }
  std::cout << core->plan().instructions.size() << " instructions, the first is "
            << core->plan().instructions[0].op_type << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const absl::Status status = ReadDigit(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
