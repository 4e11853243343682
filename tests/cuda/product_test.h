// A fixture for tests of products.
#pragma once

#include <memory>

#include "kernels/cuda/product.h"
#include "tests/cuda/kernel_test.h"
#include "tests/cuda/library_test.h"

namespace interp::cuda_test {

// Runs products on the null stream.
class ProductTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    auto blas = cuda::BlasHandle::Make();
    ASSERT_TRUE(blas.ok()) << blas.status();
    blas_ = *std::move(blas);
  }
  void TearDown() override {
    blas_.reset();
    KernelTest::TearDown();
  }

  absl::Status Run(const cuda::ProductShape& shape, const cuda::ProductOperands& operands) {
    return plans_.Run(*blas_, shape, operands, /*stream=*/nullptr,
                      [this](size_t bytes) { return Workspace::Take(memory_, bytes); });
  }

  std::unique_ptr<cuda::BlasHandle> blas_;
  cuda::ProductPlans plans_;
  DeviceWorkspaces memory_;
};

}  // namespace interp::cuda_test
