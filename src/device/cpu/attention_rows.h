// The softmax of attention and its gradient on rows of scores, in vector code. A row holds the scores of one query
// with the keys 0, 1, ...; only the first `valid` of them count (causality), the rest of the row is set to 0.
//
// Rows are multiples of `row_step` floats long and 64-byte aligned.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "device/operations.h"

namespace zt::cpu {

constexpr std::int64_t row_step = 16;

// How probabilities are handed to the product with the values.
struct RowFormat {
  DType rounded = DType::f32;  // P is rounded to this
  DType stored = DType::f32;   // and kept as this: the same, or fp32 where the processor cannot multiply it
};

// probabilities[0, columns) = dropout(softmax(scale * scores)), rounded. Overwrites scores; probabilities may be the
// same memory if stored as fp32. Returns log(sum(exp(scale * scores))). first_element: for dropout, the row's place,
// counted in elements from the first of this rank's first sample.
float softmax_row(float* scores, void* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                  RowFormat format, const Dropout& dropout, std::int64_t first_element);

// From the scores, their log_sum_exp and d_probabilities (of the dropped out ones), with product = sum(d_out * out):
//   probabilities: as softmax_row gives them
//   d_scores = softmax * (dropout(d_probabilities) - product) * scale, stored in format.stored
// Both outputs may be the memory of scores and of d_probabilities if stored as fp32.
void softmax_row_backward(float* scores, float* d_probabilities, void* probabilities, void* d_scores,
                          std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp, float product,
                          RowFormat format, const Dropout& dropout, std::int64_t first_element);

// sum over i of a[i] * b[i] in fp32, both of one dtype, in an order fixed by the count.
float dot_row(DType dtype, const void* a, const void* b, std::int64_t count);

}  // namespace zt::cpu
