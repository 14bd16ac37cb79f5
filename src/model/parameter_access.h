// How a model gets at its parameters. The model declares units and the order in which each pass uses them; it
// never learns how many ranks there are or what each of them holds (zero/ has one engine per ZeRO stage).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/operations.h"

namespace zt {

// Tensors of a unit lie in flat buffers: what products read, and everything small (biases, norms); those that training
// leaves as they are lie apart, as they have neither gradients nor optimizer states.
enum class Segment : std::uint8_t { matrices, vectors, frozen_matrices, frozen_vectors };
constexpr int segment_count = 4;
constexpr std::array<Segment, segment_count> all_segments = {Segment::matrices, Segment::vectors,
                                                             Segment::frozen_matrices, Segment::frozen_vectors};
constexpr std::array<Segment, 2> trained_segments = {Segment::matrices, Segment::vectors};
using ParametersBySegment = std::array<std::int64_t, segment_count>;  // how many of a model's lie in each

constexpr bool is_trained(Segment segment) { return segment == Segment::matrices || segment == Segment::vectors; }
constexpr bool holds_vectors(Segment segment) {
  return segment == Segment::vectors || segment == Segment::frozen_vectors;
}

// What a tensor is for. `matrix`: weights of products and embedding tables; `bias`: of linear layers; `norm`: weights
// and biases of norms.
enum class TensorKind : std::uint8_t { matrix, bias, norm };

struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  Segment segment = Segment::matrices;
  Distribution initial = Distribution::constant;
  float initial_scale = 0.0F;
  TensorKind kind = TensorKind::matrix;
  bool hidden = false;  // a matrix [outputs, inputs] of a hidden layer, neither a table nor the head: what Muon updates

  std::int64_t count() const {
    std::int64_t product = 1;
    for (const auto extent : shape) product *= extent;
    return product;
  }
};

// What is gathered, reduced and freed together.
struct UnitSpec {
  std::string name;
  std::vector<TensorSpec> tensors;
  // Used at both ends of a pass (the embedding with a tied head): keeps a gather buffer and a gradient buffer of
  // its own from its first use to its last.
  bool spans_pass = false;
};

inline bool trains(const UnitSpec& unit) {
  return std::any_of(unit.tensors.begin(), unit.tensors.end(),
                     [](const TensorSpec& tensor) { return is_trained(tensor.segment); });
}

enum class Pass : std::uint8_t { training_forward, backward, inference };

struct GradientView {
  TensorView view;   // empty: the tensor is frozen, its gradient is not wanted
  bool add = false;  // the micro-batch has already put a contribution there (the tied head's)
};

class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;

  // Starts a pass that will acquire units in the model's order(pass).
  virtual void begin(Pass pass) = 0;
  // Makes a unit's values readable by operations put on the compute stream from now on, until release(unit).
  virtual void acquire(int unit) = 0;
  virtual ConstTensorView parameter(int unit, int tensor) const = 0;
  virtual void release(int unit) = 0;

  // Where the gradient of this micro-batch goes. Writing may start at once on the compute stream.
  virtual GradientView gradient(int unit, int tensor) = 0;
  // All gradients of the unit have been put on the compute stream: reduce them.
  virtual void gradients_ready(int unit) = 0;
};

}  // namespace zt
