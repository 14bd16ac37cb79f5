#include "cuda/operation_check.h"

namespace zt::test {

TEST_CASE("a GPU copies there and back") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const std::vector<double> values = random_values(1000, 1);
  const std::vector<double> back = bench.read(bench.tensor(values, DType::f32));
  check_close(back, values, 1e-7, 0.0);
}

}  // namespace zt::test
