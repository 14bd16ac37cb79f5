// Real kernels: right results, and the same bits in every order of threads and blocks.
#include "kernels/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "device_array.h"
#include "emulation.h"

using zt::emulation::Configured;
using zt::emulation::DeviceArray;
using zt::emulation::numbers;
using zt::emulation::Order;
using zt::emulation::Settings;
using zt::emulation::settings;

namespace samples = zt::samples;

namespace zt::emulation {

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> result(count);
  for (float& value : result) value = static_cast<float>(static_cast<double>(engine()) / 2147483648.0 - 1.0);
  return result;
}

}  // namespace zt::emulation

namespace {

// The result of `run` in forward order; the other orders must give the same bits.
template <typename Run>
auto in_every_order(Run run) {
  Settings wanted = settings();
  wanted.order = Order::forward;
  const auto expected = [&] {
    const Configured configured(wanted);
    return run();
  }();
  for (const Order order : {Order::reversed, Order::shuffled, Order::shuffled}) {
    wanted.order = order;
    ++wanted.seed;
    const Configured configured(wanted);
    const auto result = run();
    REQUIRE(result.size() == expected.size());
    CHECK(std::memcmp(result.data(), expected.data(), result.size() * sizeof(result[0])) == 0);
  }
  return expected;
}

}  // namespace

TEST_CASE("a layer norm of one warp a row") {
  constexpr int rows = 7;
  constexpr int width = 100;
  const auto input = numbers(rows * width, 1);
  const auto weight = numbers(width, 2);
  const auto result = in_every_order([&] {
    const DeviceArray<float> x(input);
    const DeviceArray<float> w(weight);
    const DeviceArray<float> y(input.size());
    REQUIRE(samples::layer_norm(y.get(), x.get(), w.get(), rows, width, nullptr) == cudaSuccess);
    return y.values();
  });
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) sum += input[row * width + i];
    for (std::size_t i = 0; i < width; ++i) squares += std::pow(input[row * width + i] - sum / width, 2);
    for (std::size_t i = 0; i < width; ++i) {
      const double expected = (input[row * width + i] - sum / width) / std::sqrt(squares / width + 1e-5) * weight[i];
      CHECK(std::abs(result[row * width + i] - expected) < 2e-6);
    }
  }
}

TEST_CASE("a softmax of one block a row") {
  constexpr int rows = 5;
  constexpr int width = 333;
  const auto input = numbers(rows * width, 3);
  const auto result = in_every_order([&] {
    const DeviceArray<float> x(input);
    const DeviceArray<float> y(input.size());
    REQUIRE(samples::softmax(y.get(), x.get(), rows, width, nullptr) == cudaSuccess);
    return y.values();
  });
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(input[row * width + i]));
    for (std::size_t i = 0; i < width; ++i) {
      CHECK(std::abs(result[row * width + i] - std::exp(input[row * width + i]) / sum) < 1e-8);
    }
  }
}

TEST_CASE("devices that run at the same time, each driven by a thread, do not disturb each other") {
  Settings wanted = settings();
  wanted.devices = 4;
  wanted.order = Order::shuffled;
  const Configured configured(wanted);
  constexpr int rows = 20;
  constexpr int width = 200;
  const auto run = [&](int device) {
    cudaSetDevice(device);
    const auto input = numbers(rows * width, 100 + static_cast<unsigned>(device));
    std::vector<float> output(input.size());
    constexpr std::size_t bytes = rows * width * sizeof(float);
    void* memory = nullptr;
    cudaMalloc(&memory, 2 * bytes);
    auto* x = static_cast<float*>(memory);
    for (int round = 0; round < 5; ++round) {
      cudaMemcpy(x, input.data(), bytes, cudaMemcpyHostToDevice);
      samples::softmax(x + rows * width, x, rows, width, nullptr);
      cudaMemcpy(output.data(), x + rows * width, bytes, cudaMemcpyDeviceToHost);
    }
    cudaFree(memory);
    return output;
  };
  std::vector<std::vector<float>> together(4);
  std::vector<std::thread> threads;
  for (int device = 0; device < 4; ++device) {
    threads.emplace_back([&, device] { together[static_cast<std::size_t>(device)] = run(device); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int device = 0; device < 4; ++device) CHECK(together[static_cast<std::size_t>(device)] == run(device));
  cudaSetDevice(0);
}

TEST_CASE("a sum that the last block finishes") {
  const auto input = numbers(5000, 4);
  const auto result = in_every_order([&] {
    const DeviceArray<float> x(input);
    const DeviceArray<float> partial(6);
    const DeviceArray<unsigned> finished(std::vector<unsigned>{0});
    const DeviceArray<float> total(1);
    for (int round = 0; round < 2; ++round) {
      REQUIRE(samples::block_sum(total.get(), partial.get(), finished.get(), x.get(), 5000, 6, nullptr) == cudaSuccess);
    }
    return total.values();
  });
  double expected = 0;
  for (const float value : input) expected += value;
  CHECK(std::abs(result[0] - expected) < 1e-3);
}

TEMPLATE_TEST_CASE("tensor-core products by mma and ldmatrix equal plain products", "", __half, __nv_bfloat16) {
  constexpr int m = 32;
  constexpr int n = 24;
  constexpr int k = 48;
  std::vector<TestType> a;
  std::vector<TestType> b;
  for (const float value : numbers(m * k, 5)) a.push_back(TestType(value));
  for (const float value : numbers(n * k, 6)) b.push_back(TestType(value));
  for (const bool b_is_k_by_n : {false, true}) {
    const auto result = in_every_order([&] {
      const DeviceArray<TestType> a_memory(a);
      const DeviceArray<TestType> b_memory(b);
      const DeviceArray<float> c(m * n);
      REQUIRE(samples::tensor_matmul(c.get(), a_memory.get(), b_memory.get(), m, n, k, b_is_k_by_n, nullptr) ==
              cudaSuccess);
      return c.values();
    });
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = 0; column < n; ++column) {
        double expected = 0;
        for (std::size_t i = 0; i < k; ++i) {
          const TestType from_b = b_is_k_by_n ? b[i * n + column] : b[column * k + i];
          expected += static_cast<double>(static_cast<float>(a[row * k + i])) * static_cast<float>(from_b);
        }
        CHECK(std::abs(result[row * n + column] - expected) < 1e-5);
      }
    }
  }
}

TEST_CASE("cp.async copies, and fills with zeros") {
  const auto input = numbers(300, 7);
  const auto result = in_every_order([&] {
    const DeviceArray<float> x(input);
    const DeviceArray<float> y(input.size());
    REQUIRE(samples::add_one_async(y.get(), x.get(), 300, 512, nullptr) == cudaSuccess);
    return y.values();
  });
  for (std::size_t i = 0; i < input.size(); ++i) CHECK(result[i] == input[i] + 1);
}

TEST_CASE("powers of 2 in one instruction") {
  const std::vector<float> input = {0.0F,   -0.0F,   1.0F,    -3.0F, 0.3F,      -17.25F,  127.5F,
                                    128.0F, -126.0F, -126.5F, -1e9F, -INFINITY, INFINITY, NAN};
  const DeviceArray<float> x(input);
  const DeviceArray<float> y(input.size());
  REQUIRE(samples::powers_of_two(y.get(), x.get(), static_cast<int>(input.size()), nullptr) == cudaSuccess);
  const auto result = y.values();
  CHECK(result[0] == 1);
  CHECK(result[1] == 1);
  for (std::size_t i = 0; i < 7; ++i) {
    const double exact = std::exp2(static_cast<double>(input[i]));
    CHECK(std::abs(result[i] - exact) <= exact * 0x1p-22);
  }
  CHECK(result[7] == INFINITY);
  CHECK(result[8] == 0x1p-126F);
  for (std::size_t i = 9; i < 12; ++i) CHECK(result[i] == 0);
  CHECK(result[12] == INFINITY);
  CHECK(std::isnan(result[13]));
}

TEST_CASE("what the lanes of a warp exchange") {
  const auto result = in_every_order([&] {
    const DeviceArray<int> output(32 * samples::exchanges);
    REQUIRE(samples::warp_exchanges(output.get(), nullptr) == cudaSuccess);
    return output.values();
  });
  unsigned every_third = 0;
  for (int lane = 0; lane < 32; lane += 3) every_third |= 1U << lane;
  for (int lane = 0; lane < 32; ++lane) {
    const int* mine = result.data() + lane * samples::exchanges;
    CHECK(mine[0] == 50);
    CHECK(mine[1] == (lane ^ 3) * 10);
    CHECK(mine[2] == (lane + 4 < 32 ? lane + 4 : lane) * 10);
    CHECK(mine[3] == (lane >= 4 ? lane - 4 : lane) * 10);
    CHECK(mine[4] == (lane / 8 * 8 + 2) * 10);
    CHECK(mine[5] == (lane % 8 + 3 < 8 ? lane + 3 : lane) * 10);
    CHECK(std::bit_cast<unsigned>(mine[6]) == every_third);
    CHECK(mine[7] == 1);
    CHECK(mine[8] == 0);
    CHECK(mine[9] == 31 * 32 / 2);
    CHECK(mine[10] == 31);
    CHECK(mine[11] == lane / 16 * 16);
    CHECK(mine[12] == 16);
    CHECK(mine[13] == 1);
    CHECK(mine[14] == 0);
    CHECK(mine[15] == (lane ^ 16));
    const unsigned own_half = lane < 16 ? 0x0000ffffU : 0xffff0000U;
    CHECK(std::bit_cast<unsigned>(mine[16]) == (lane % 3 == 0 ? every_third & own_half : 1U << lane));
  }
}

TEST_CASE("atomics") {
  for (const Order order : {Order::forward, Order::reversed}) {
    Settings wanted = settings();
    wanted.order = order;
    const Configured configured(wanted);
    const DeviceArray<unsigned long long> output(std::vector<unsigned long long>{5, 0, 0, 0});
    REQUIRE(samples::atomics(output.get(), nullptr) == cudaSuccess);
    const auto result = output.values();
    CHECK(result[0] == 5 + (64ULL << 33));
    CHECK(result[1] == 63);
    CHECK(result[2] == (order == Order::forward ? 1 : 64));  // the first thread wins
    CHECK(std::bit_cast<float>(static_cast<unsigned>(result[3])) == 16.0F);
    CHECK(static_cast<int>(result[3] >> 32) == -64);
  }
}
