// Products where cuBLASLt has no algorithm with an epilogue, and ones that fail.
#include "core/errors.h"
#include "cuda/product_check.h"
#include "cuda_emulation/emulation.h"

namespace zt::test {
namespace {

emulation::Settings without_epilogues() {
  emulation::Settings settings = emulation::settings();
  settings.epilogues = false;
  return settings;
}

}  // namespace

TEST_CASE("without an algorithm that adds a bias, it is added after the product") {
  const emulation::Configured configured(without_epilogues());
  check_biases();
}

TEST_CASE("without an algorithm that takes the GELU, it follows the product") {
  const emulation::Configured configured(without_epilogues());
  check_activations();
}

TEST_CASE("a product that fails is the run's error, with its shape and cuBLASLt's reason") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const ProductCase c{.m = 2, .n = 3, .k = 4};
  product_results(bench, c);
  emulation::fail_nth(emulation::Call::launch, 1);
  try {
    product_results(bench, c);
    FAIL("the product was to fail");
  } catch (const RunError& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(text.find("[2, 4] x [4, 3], fp32 to fp32") != std::string::npos);
    CHECK(text.find("CUBLAS_STATUS_EXECUTION_FAILED") != std::string::npos);
  }
}

}  // namespace zt::test
