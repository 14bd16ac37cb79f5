// One matrix product by the library (oneDNN's `matmul`), on the calling thread. matmul.cpp and attention.cpp cut
// their work into these. A product's bits depend on its shape, strides, dtypes and the instruction set alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace zt::cpu {

// out[m, n] (fp32) = op(a)[m, k] op(b)[k, n] (+ bias[n], fp32) (+ out if `sum`, in an order of the library's).
// op(a) is a[m, k] with row stride lda or the transpose of a[k, m]; likewise b. m, n, k > 0. dtype: of a and b, fp32
// or, with InstructionLevel::avx512_bf16, bf16.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false;
  DType dtype = DType::f32;
  bool bias = false, sum = false;

  bool operator==(const Product&) const = default;
};

// Makes the product if no thread has made it yet. Returns the scratch bytes that it needs, a multiple of 64.
std::int64_t prepare_product(const Product& product);

// Those that have been made, by any thread.
std::vector<Product> prepared_products();

// Makes what the calling thread needs to run any product that has been prepared, so that running it takes nothing.
void prepare_thread_for_products();

// Scratch memory that a task may use up to its end; 64-byte aligned.
struct Scratch {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// scratch: at least as many bytes as prepare_product says, else std::logic_error. Nothing of ours is
// allocated and no lock taken if the calling thread was prepared for the product, or has run it before.
void run_product(const Product& product, const void* a, const void* b, float* out, const float* bias, Scratch scratch);

// Whether products of this dtype need no conversion to fp32 first.
bool multiplies_natively(DType dtype);

// Whether the library reads operands where they lie, and so at the pace of their strides. Below AVX-512 it copies them
// to a layout of its own for large products alone (about 1/m + 1/n < 0.0038), and rows that lie a multiple of 4 KiB
// apart then take turns in the same few lines of the cache: products that walk down such rows were measured at 0.4 to
// 0.5 of the rate that they have on rows `row_padding` floats longer (oneDNN 2.6.3, Zen 3; the rows of a transposed a
// and of a b that is not).
bool reads_rows_in_place();
constexpr std::int64_t row_padding = 16;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace zt::cpu
