// The bytes that an operation has to read and to write if it goes through each operand once, from its shapes.
#pragma once

#include <cstdint>
#include <variant>

#include "device/operations.h"

namespace zt::test {

struct Traffic {
  std::int64_t read = 0, written = 0;
};

namespace traffic {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

inline std::int64_t bytes(const ConstTensorView& view, std::int64_t elements) {
  return view ? elements * static_cast<std::int64_t>(size_of(view.dtype)) : 0;
}
inline std::int64_t all(const ConstTensorView& view) { return view ? view.bytes() : 0; }
// What is added to is read as well.
inline Traffic update(std::int64_t read, std::int64_t written, bool add) {
  return {read + (add ? written : 0), written};
}

template <typename Op>
Traffic attention(const Op& op, std::int64_t read_rows, std::int64_t written_rows) {
  const std::int64_t rows = op.batch * op.length * op.heads;
  return {bytes(op.qkv, read_rows * rows * op.head_size), bytes(op.qkv, written_rows * rows * op.head_size)};
}

}  // namespace traffic

inline Traffic traffic_of(const Operation& operation) {
  using namespace traffic;
  return std::visit(
      Overloaded{
          [](const Fill& op) -> Traffic {
            return {0, all(op.out)};
          },
          [](const Cast& op) -> Traffic {
            return {all(op.in), all(op.out)};
          },
          [](const Initialize& op) -> Traffic {
            return {0, all(op.out)};
          },
          [](const MatMul& op) {
            const std::int64_t operands = bytes(op.a, op.m * op.k) + bytes(op.b, op.k * op.n) + bytes(op.bias, op.n);
            Traffic traffic = update(operands, bytes(op.out, op.m * op.n), op.add);
            traffic.read += bytes(op.activation_input, op.m * op.n);
            traffic.written += bytes(op.activated, op.m * op.n);
            return traffic;
          },
          [](const BiasGradient& op) {
            return update(bytes(op.d_out, op.rows * op.columns), bytes(op.d_bias, op.columns), op.add);
          },
          [](const EmbeddingForward& op) -> Traffic {
            const std::int64_t rows = op.batch * op.length;
            return {
                4 * rows + bytes(op.token_table, rows * op.columns) + bytes(op.position_table, op.length * op.columns),
                bytes(op.out, rows * op.columns)};
          },
          [](const EmbeddingBackward& op) -> Traffic {
            const std::int64_t rows = op.batch * op.length;
            const std::int64_t tokens = bytes(op.d_token_table, op.vocabulary * op.columns);
            const std::int64_t positions = bytes(op.d_position_table, op.positions * op.columns);
            return {4 * rows + bytes(op.d_out, rows * op.columns) + (op.add_token ? tokens : 0) +
                        (op.add_position ? positions : 0),
                    tokens + positions};
          },
          [](const LayerNormForward& op) -> Traffic {
            const std::int64_t elements = op.rows * op.columns;
            return {bytes(op.in, elements) + bytes(op.delta, elements) + bytes(op.weight, op.columns) +
                        bytes(op.bias, op.columns),
                    (op.delta ? bytes(op.sum, elements) : 0) + bytes(op.out, elements) + 8 * op.rows};
          },
          [](const LayerNormBackward& op) -> Traffic {
            const std::int64_t elements = op.rows * op.columns;
            return {bytes(op.in, elements) + bytes(op.d_out, elements) + bytes(op.d_residual, elements) +
                        bytes(op.weight, op.columns) + bytes(op.bias, op.columns) + 8 * op.rows +
                        (op.add_weight ? all(op.d_weight) : 0) + (op.add_bias ? all(op.d_bias) : 0),
                    bytes(op.d_in, elements) + bytes(op.d_delta, elements) + bytes(op.out, elements) +
                        all(op.d_weight) + all(op.d_bias)};
          },
          [](const ActivationForward& op) -> Traffic {
            return {all(op.in), all(op.out)};
          },
          [](const ActivationBackward& op) -> Traffic {
            return {all(op.in) + all(op.d_out), all(op.d_in)};
          },
          [](const DropoutForward& op) -> Traffic {
            return {all(op.in), all(op.out)};
          },
          [](const AttentionForward& op) { return attention(op, 3, 1); },
          [](const AttentionBackward& op) { return attention(op, 5, 3); },
          [](const CachedAttention& op) -> Traffic {
            const std::int64_t width = op.batch * op.heads * op.head_size;
            return {bytes(op.qkv, (2 * op.first + 3 * op.length) * width), bytes(op.out, op.length * width)};
          },
          [](const CrossEntropy& op) -> Traffic {
            return {bytes(op.logits, op.rows * op.stride) + 4 * op.rows,
                    bytes(op.d_logits, op.rows * op.stride) + 4 * op.rows};
          },
          [](const SquaredError& op) -> Traffic {
            return {bytes(op.prediction, op.rows * op.columns) + 4 * op.rows * op.columns,
                    bytes(op.d_prediction, op.rows * op.columns) + 4 * op.rows};
          },
          [](const SumValues& op) -> Traffic {
            return {4 * op.count, 0};
          },
          [](const SumSquares& op) -> Traffic {
            return {all(op.in), 0};
          },
          [](const ReduceOnto& op) {
            const auto sources = static_cast<std::int64_t>(op.sources.size());
            return update(sources * op.acc.count * static_cast<std::int64_t>(size_of(op.source_dtype)), all(op.acc),
                          !op.first);
          },
          [](const DecideUpdate&) -> Traffic { return {}; },
          [](const AdamUpdate& op) -> Traffic {
            const std::int64_t state =
                all(op.parameter) + all(op.first_moment) + all(op.second_moment) + all(op.largest_second_moment);
            return {state + all(op.gradient), state + all(op.published)};
          },
          [](const SgdUpdate& op) -> Traffic {
            const std::int64_t state = all(op.parameter) + all(op.momentum_buffer);
            return {state + all(op.gradient), state + all(op.published)};
          },
          [](const AdagradUpdate& op) -> Traffic {
            const std::int64_t state = all(op.parameter) + all(op.sum_of_squares);
            return {state + all(op.gradient), state + all(op.published)};
          },
          [](const LionUpdate& op) -> Traffic {
            const std::int64_t state = all(op.parameter) + all(op.momentum);
            return {state + all(op.gradient), state + all(op.published)};
          },
          [](const LambMoments& op) -> Traffic {
            const std::int64_t state = all(op.first_moment) + all(op.second_moment);
            return {state + all(op.parameter) + all(op.gradient), state + all(op.direction)};
          },
          [](const TrustRatios&) -> Traffic { return {}; },
          [](const LambUpdate& op) -> Traffic {
            return {all(op.parameter) + all(op.first_moment) + all(op.second_moment),
                    all(op.parameter) + all(op.published)};
          },
          [](const MuonDirection& op) -> Traffic {
            return {all(op.momentum) + all(op.gradient), all(op.momentum) + all(op.direction)};
          },
          [](const DivideByNorm& op) -> Traffic {
            return {all(op.values), all(op.values)};
          },
          [](const Combine& op) -> Traffic {
            return {all(op.a) + all(op.b), all(op.out)};
          },
          [](const MuonUpdate& op) -> Traffic {
            return {all(op.parameter) + all(op.direction), all(op.parameter) + all(op.published)};
          },
          [](const Checksum& op) -> Traffic {
            return {all(op.in), 0};
          },
      },
      operation);
}

}  // namespace zt::test
