// The order of samples in an epoch.
#include "data/permutation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "catch_compat.h"

TEST_CASE("a permutation is a bijection for every size up to 300 and some large ones") {
  std::vector<std::int64_t> sizes;
  for (std::int64_t n = 1; n <= 300; ++n) sizes.push_back(n);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 65537, 100003, 1 << 20});
  for (const std::int64_t n : sizes) {
    const zt::Permutation permutation(n, 42);
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    bool once = true;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t image = permutation(i);
      once = once && image >= 0 && image < n && !seen[static_cast<std::size_t>(image)];
      if (once) seen[static_cast<std::size_t>(image)] = true;
    }
    INFO(n);
    REQUIRE(once);
  }
}

TEST_CASE("a permutation of a huge range stays inside and does not repeat itself soon") {
  const std::int64_t n = (std::int64_t{1} << 40) + 12345;
  const zt::Permutation permutation(n, 7);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const std::int64_t image = permutation(i);
    REQUIRE((image >= 0 && image < n));
    seen.insert(image);
  }
  CHECK(seen.size() == 10000);
}

TEST_CASE("over many keys every index goes everywhere about equally often") {
  for (const std::int64_t n : {2, 3, 5, 8, 13}) {
    const int keys = 20000;
    std::vector<int> counts(static_cast<std::size_t>(n * n), 0);
    for (int key = 0; key < keys; ++key) {
      const zt::Permutation permutation = zt::epoch_order(n, 1, key);
      for (std::int64_t i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(i * n + permutation(i))];
    }
    const double expected = static_cast<double>(keys) / static_cast<double>(n);
    for (const int count : counts) CHECK(std::abs(count - expected) < 6.0 * std::sqrt(expected));
  }
}

TEST_CASE("neighbours are torn apart, and epochs and seeds differ") {
  const std::int64_t n = 10007;
  const auto first = zt::epoch_order(n, 1234, 0);
  const auto second = zt::epoch_order(n, 1234, 1);
  const auto other_seed = zt::epoch_order(n, 1235, 0);
  double distance = 0.0;
  int fixed = 0;
  int same_epoch = 0;
  int same_seed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) distance += static_cast<double>(std::abs(first(i) - first(i - 1)));
    fixed += first(i) == i ? 1 : 0;
    same_epoch += first(i) == second(i) ? 1 : 0;
    same_seed += first(i) == other_seed(i) ? 1 : 0;
  }
  // Two independent uniform numbers are n / 3 apart on average; a random permutation has one fixed point.
  CHECK(distance / static_cast<double>(n - 1) == Approx(static_cast<double>(n) / 3.0).epsilon(0.03));
  CHECK(fixed < 10);
  CHECK(same_epoch < 10);
  CHECK(same_seed < 10);
}

TEST_CASE("the order of samples is what it was in earlier builds") {
  const auto order = zt::epoch_order(10, 1234, 0);
  std::vector<std::int64_t> images;
  for (std::int64_t i = 0; i < 10; ++i) images.push_back(order(i));
  CHECK(images == std::vector<std::int64_t>{0, 3, 1, 6, 8, 4, 7, 2, 5, 9});
}
