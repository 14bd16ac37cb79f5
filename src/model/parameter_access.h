// How a model gets at its parameters. The model declares units and the order in which each pass uses them; it
// never learns how many ranks there are or what each of them holds (zero/ has one engine per ZeRO stage).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "device/operations.h"

namespace zt {

// Tensors of a unit lie in two flat buffers: what products read, and everything small (biases, norms).
enum class Segment : std::uint8_t { matrices, vectors };
constexpr int segment_count = 2;

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

enum class Pass : std::uint8_t { training_forward, backward, inference };

struct GradientView {
  TensorView view;
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
