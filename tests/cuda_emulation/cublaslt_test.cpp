// cuBLASLt's slice against plain products in double, and what it refuses.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <type_traits>

#include "device_array.h"
#include "emulation.h"

using namespace zt::emulation;

namespace {

template <typename T>
constexpr cudaDataType_t data_type = CUDA_R_32F;
template <>
constexpr cudaDataType_t data_type<__half> = CUDA_R_16F;
template <>
constexpr cudaDataType_t data_type<__nv_bfloat16> = CUDA_R_16BF;

template <typename T>
std::vector<T> values_of(std::size_t count, unsigned seed) {
  std::vector<T> result;
  for (const float value : numbers(count, seed)) result.push_back(T(value));
  return result;
}

constexpr int m = 16;
constexpr int n = 12;
constexpr int k = 20;

// One product with its descriptors; tests change what they are about.
struct Matmul {
  explicit Matmul(cudaDataType_t type, bool transpose_a = false, bool transpose_b = false,
                  cublasComputeType_t compute = CUBLAS_COMPUTE_32F) {
    REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulDescCreate(&descriptor, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    cublasLtMatrixLayoutCreate(&a, type, transpose_a ? k : m, transpose_a ? m : k, ld);
    cublasLtMatrixLayoutCreate(&b, type, transpose_b ? n : k, transpose_b ? k : n, ld);
    cublasLtMatrixLayoutCreate(&c, type, m, n, ld);
    cublasLtMatmulPreferenceCreate(&preference);
    const std::uint64_t bytes = workspace_bytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
  }
  ~Matmul() {
    cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(descriptor);
    cublasLtDestroy(handle);
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  template <typename T>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return cublasLtMatmulDescSetAttribute(descriptor, attribute, &value, sizeof value);
  }
  cublasStatus_t choose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle, descriptor, a, b, c, c, preference, 1, &chosen, &found);
  }
  cublasStatus_t run(const void* a_values, const void* b_values, void* c_values, float alpha = 1, float beta = 0) {
    const cublasStatus_t status = choose();
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return cublasLtMatmul(handle, descriptor, &alpha, a_values, a, b_values, b, &beta, c_values, c, c_values, c,
                          &chosen.algo, workspace.get(), given_workspace, nullptr);
  }

  static constexpr int ld = 24;  // of all matrices, more than any has rows
  static constexpr std::size_t workspace_bytes = 4096;
  std::size_t given_workspace = workspace_bytes;
  DeviceArray<char> workspace{workspace_bytes};
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t descriptor = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t c = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t chosen = {};
};

constexpr std::size_t room = 24 * 24;

template <typename T>
double element(const std::vector<T>& values, int row, int column, bool transposed) {
  const int at = transposed ? column + row * Matmul::ld : row + column * Matmul::ld;
  return static_cast<double>(static_cast<float>(values[static_cast<std::size_t>(at)]));
}

template <typename T>
double dot(const std::vector<T>& a, const std::vector<T>& b, int row, int column, bool transpose_a, bool transpose_b) {
  double sum = 0;
  for (int i = 0; i < k; ++i) sum += element(a, row, i, transpose_a) * element(b, i, column, transpose_b);
  return sum;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

}  // namespace

TEMPLATE_TEST_CASE("products in all transpositions, with beta, equal plain ones", "", float, __half, __nv_bfloat16) {
  const auto a = values_of<TestType>(room, 1);
  const auto b = values_of<TestType>(room, 2);
  const auto c = values_of<TestType>(room, 3);
  // Half a unit in the last place of the result's format, beside the error of fp32 sums.
  const double rounding = std::ldexp(1.0, std::is_same_v<TestType, float>    ? -24
                                          : std::is_same_v<TestType, __half> ? -11
                                                                             : -8);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.0F, 1.0F}) {
        Matmul matmul(data_type<TestType>, transpose_a, transpose_b);
        const DeviceArray<TestType> a_memory(a);
        const DeviceArray<TestType> b_memory(b);
        const DeviceArray<TestType> c_memory(c);
        REQUIRE(matmul.run(a_memory.get(), b_memory.get(), c_memory.get(), 2, beta) == CUBLAS_STATUS_SUCCESS);
        const auto result = c_memory.values();
        for (int column = 0; column < n; ++column) {
          for (int row = 0; row < Matmul::ld; ++row) {
            const double before = element(c, row, column, false);
            const double expected =
                row < m ? 2 * dot(a, b, row, column, transpose_a, transpose_b) + beta * before : before;
            CHECK(std::abs(element(result, row, column, false) - expected) <= std::abs(expected) * rounding + 1e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("TF32 rounds its inputs to ten bits") {
  auto a = values_of<float>(room, 1);
  const auto b = values_of<float>(room, 2);
  const DeviceArray<float> a_memory(a);
  const DeviceArray<float> b_memory(b);
  const DeviceArray<float> c_memory(room);
  Matmul matmul(CUDA_R_32F, false, false, CUBLAS_COMPUTE_32F_FAST_TF32);
  REQUIRE(matmul.run(a_memory.get(), b_memory.get(), c_memory.get()) == CUBLAS_STATUS_SUCCESS);
  const double error = std::abs(element(c_memory.values(), 0, 0, false) - dot(a, b, 0, 0, false, false));
  CHECK(error > 1e-6);
  CHECK(error < 5e-3);
}

TEST_CASE("epilogues: bias, GELU with what went into it, and GELU's gradient") {
  const auto a = values_of<float>(room, 1);
  const auto b = values_of<float>(room, 2);
  const auto bias = values_of<float>(m, 4);
  const DeviceArray<float> a_memory(a);
  const DeviceArray<float> b_memory(b);
  const DeviceArray<float> bias_memory(bias);
  const DeviceArray<float> aux_memory(room);
  const DeviceArray<float> c_memory(room);
  Matmul forward(CUDA_R_32F);
  CHECK(forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX_BIAS) == CUBLAS_STATUS_SUCCESS);
  CHECK(forward.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_memory.get()) == CUBLAS_STATUS_SUCCESS);
  CHECK(forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux_memory.get()) == CUBLAS_STATUS_SUCCESS);
  CHECK(forward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{Matmul::ld}) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(forward.run(a_memory.get(), b_memory.get(), c_memory.get()) == CUBLAS_STATUS_SUCCESS);
  const auto activated = c_memory.values();
  const auto before = aux_memory.values();
  Matmul backward(CUDA_R_32F);
  CHECK(backward.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU) == CUBLAS_STATUS_SUCCESS);
  CHECK(backward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux_memory.get()) == CUBLAS_STATUS_SUCCESS);
  CHECK(backward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{Matmul::ld}) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(backward.run(a_memory.get(), b_memory.get(), c_memory.get()) == CUBLAS_STATUS_SUCCESS);
  const auto gradient = c_memory.values();
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      const double product = dot(a, b, row, column, false, false);
      const double x = product + bias[static_cast<std::size_t>(row)];
      CHECK(std::abs(element(before, row, column, false) - x) < 1e-5);
      CHECK(std::abs(element(activated, row, column, false) - gelu(x)) < 1e-5);
      const double slope = (gelu(x + 1e-4) - gelu(x - 1e-4)) / 2e-4;
      CHECK(std::abs(element(gradient, row, column, false) - product * slope) < 1e-4);
    }
  }
}

TEST_CASE("batches lie a stride apart") {
  constexpr std::int64_t stride = room;
  const auto a = values_of<float>(2 * room, 1);
  const auto b = values_of<float>(2 * room, 2);
  const DeviceArray<float> a_memory(a);
  const DeviceArray<float> b_memory(b);
  const DeviceArray<float> c_memory(2 * room);
  Matmul matmul(CUDA_R_32F);
  const std::int32_t batches = 2;
  for (cublasLtMatrixLayout_t layout : {matmul.a, matmul.b, matmul.c}) {
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  }
  REQUIRE(matmul.run(a_memory.get(), b_memory.get(), c_memory.get()) == CUBLAS_STATUS_SUCCESS);
  const auto result = c_memory.values();
  const std::vector<float> second_a(a.begin() + stride, a.end());
  const std::vector<float> second_b(b.begin() + stride, b.end());
  const std::vector<float> second(result.begin() + stride, result.end());
  CHECK(element(result, 3, 2, false) == Approx(dot(a, b, 3, 2, false, false)).epsilon(1e-4));
  CHECK(element(second, 3, 2, false) == Approx(dot(second_a, second_b, 3, 2, false, false)).epsilon(1e-4));
}

TEST_CASE("what cuBLASLt would refuse is refused") {
  const DeviceArray<float> values(std::vector<float>(room, 1.0F));
  const DeviceArray<float> c_memory(room);
  {
    Matmul matmul(CUDA_R_32F);
    CHECK(matmul.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1}) == CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK(matmul.set(CUBLASLT_MATMUL_DESC_TRANSA, std::int64_t{0}) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(matmul.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADA) == CUBLAS_STATUS_SUCCESS);
    CHECK(matmul.choose() == CUBLAS_STATUS_NOT_SUPPORTED);
  }
  {
    Matmul matmul(CUDA_R_16F, false, false, CUBLAS_COMPUTE_16F);
    CHECK(matmul.choose() == CUBLAS_STATUS_NOT_SUPPORTED);
  }
  {
    Matmul matmul(CUDA_R_32F);
    matmul.given_workspace = 100;
    CHECK(matmul.run(values.get(), values.get(), c_memory.get()) == CUBLAS_STATUS_INVALID_VALUE);
  }
  {
    Matmul matmul(CUDA_R_32F);
    CHECK(matmul.run(values.get() + 4, values.get(), c_memory.get()) == CUBLAS_STATUS_INVALID_VALUE);  // 16 bytes off
    const std::uint32_t promised = 16;
    cublasLtMatmulPreferenceSetAttribute(matmul.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &promised,
                                         sizeof promised);
    CHECK(matmul.run(values.get() + 4, values.get(), c_memory.get()) == CUBLAS_STATUS_SUCCESS);
  }
  {
    Matmul matmul(CUDA_R_32F);
    const DeviceArray<float> small(100);
    const Findings findings;
    CHECK(matmul.run(values.get(), values.get(), small.get()) == CUBLAS_STATUS_INVALID_VALUE);
    REQUIRE(findings.all().size() == 1);
    CHECK(findings.all()[0].find("cublasLtMatmul: D has 1120 bytes") == 0);
  }
}
