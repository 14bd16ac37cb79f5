// The optimizers against a plain transcription of their comments in operations.h, to the bit.
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

// Not inlined arithmetic in one expression: every operation is rounded to float.
void adam_plainly(const AdamUpdate& op, float gradient, float& p, float& m, float& v) {
  float g = gradient * op.factor;
  if (op.decoupled) {
    const float decay = op.learning_rate * op.weight_decay;
    p = p * (1.0F - decay);
  } else if (op.weight_decay != 0.0F) {
    const float decay = op.weight_decay * p;
    g = g + decay;
  }
  const float change = (g - m) * op.one_minus_beta1;
  m = m + change;
  const float square = g * g;
  const float kept = v * op.beta2;
  const float added = square * op.one_minus_beta2;
  v = kept + added;
  const float root = std::sqrt(v) / op.bias_correction2_sqrt;
  const float step = op.step_size * m;
  p = p - step / (root + op.epsilon);
}

void sgd_plainly(const SgdUpdate& op, float gradient, float& p, float& b) {
  float g = gradient * op.factor;
  if (op.weight_decay != 0.0F) {
    const float decay = op.weight_decay * p;
    g = g + decay;
  }
  if (op.momentum != 0.0F) {
    if (op.first_step) {
      b = g;
    } else {
      const float kept = op.momentum * b;
      const float added = (1.0F - op.dampening) * g;
      b = kept + added;
    }
    const float ahead = op.momentum * b;
    g = op.nesterov ? g + ahead : b;
  }
  const float step = op.learning_rate * g;
  p = p - step;
}

struct State {
  std::vector<float> parameter, first, second, gradient;
};

State some_state(Random& random, std::int64_t size, DType gradient_type) {
  State state;
  state.parameter = normals(random, size);
  state.first = normals(random, size, 0.01F);
  state.second = normals(random, size, 0.01F);
  for (float& v : state.second) v = v * v;
  state.gradient = rounded(gradient_type, normals(random, size, 10.0F));
  return state;
}

constexpr std::int64_t sizes[] = {0, 1, 16, 50, 333, 40001};

}  // namespace

TEST_CASE("Adam and AdamW equal their definition to the bit, with every gradient and published dtype") {
  Random random(30);
  for_instruction_sets([&] {
    for (const DType gradient_type : all_dtypes) {
      for (const std::int64_t size : sizes) {
        const State state = some_state(random, size, gradient_type);
        const DType published_type = all_dtypes[random() % 3];
        const bool with_copy = random() % 4 != 0;
        AdamUpdate op;
        op.factor = 0.37F;
        op.learning_rate = 3e-4F;
        op.step_size = 3e-4F / 0.19F;
        op.bias_correction2_sqrt = 0.0447F;
        op.one_minus_beta1 = static_cast<float>(1.0 - 0.9);
        op.one_minus_beta2 = static_cast<float>(1.0 - 0.999);
        op.weight_decay = random() % 3 == 0 ? 0.0F : 0.1F;
        op.decoupled = random() % 2 == 0;
        require_same_everywhere([&](Setup setup) {
          Tensor parameter(DType::f32, state.parameter, setup.offset);
          Tensor first(DType::f32, state.first, setup.offset);
          Tensor second(DType::f32, state.second, setup.offset);
          const Tensor gradient(gradient_type, state.gradient, setup.offset);
          Tensor published(published_type, size, setup.offset);
          op.parameter = parameter.view();
          op.first_moment = first.view();
          op.second_moment = second.view();
          op.gradient = gradient.view();
          op.published = with_copy ? published.view() : TensorView();
          setup.run(op);
          for (std::int64_t i = 0; i < size; ++i) {
            const auto at = static_cast<std::size_t>(i);
            float p = state.parameter[at];
            float m = state.first[at];
            float v = state.second[at];
            adam_plainly(op, state.gradient[at], p, m, v);
            const bool equal = parameter.floats()[i] == p && first.floats()[i] == m && second.floats()[i] == v &&
                               (!with_copy || published.get(i) == round_to(published_type, p));
            if (!equal) {
              INFO("element " << i);
              REQUIRE(equal);
            }
          }
          return collect(parameter, first, second, published);
        });
      }
    }
  });
}

TEST_CASE("SGD equals its definition to the bit, with and without momentum") {
  Random random(31);
  for_instruction_sets([&] {
    for (const DType gradient_type : all_dtypes) {
      for (const std::int64_t size : sizes) {
        for (int variant = 0; variant < 8; ++variant) {
          const State state = some_state(random, size, gradient_type);
          const DType published_type = all_dtypes[random() % 3];
          SgdUpdate op;
          op.factor = 0.61F;
          op.learning_rate = 0.05F;
          op.momentum = (variant & 1) != 0 ? 0.9F : 0.0F;
          op.nesterov = (variant & 2) != 0;
          op.first_step = (variant & 4) != 0;
          op.dampening = op.nesterov ? 0.0F : 0.3F;
          op.weight_decay = random() % 2 == 0 ? 0.0F : 0.01F;
          const auto run = [&](Setup setup) {
            Tensor parameter(DType::f32, state.parameter, setup.offset);
            Tensor buffer(DType::f32, state.first, setup.offset);
            const Tensor gradient(gradient_type, state.gradient, setup.offset);
            Tensor published(published_type, size, setup.offset);
            op.parameter = parameter.view();
            op.momentum_buffer = op.momentum != 0.0F ? buffer.view() : TensorView();
            op.gradient = gradient.view();
            op.published = published.view();
            setup.run(op);
            for (std::int64_t i = 0; i < size; ++i) {
              const auto at = static_cast<std::size_t>(i);
              float p = state.parameter[at];
              float b = state.first[at];
              sgd_plainly(op, state.gradient[at], p, b);
              if (parameter.floats()[i] != p || buffer.floats()[i] != b) {
                REQUIRE(parameter.floats()[i] == p);
                REQUIRE(buffer.floats()[i] == b);
              }
              if (published.get(i) != round_to(published_type, p))
                REQUIRE(published.get(i) == round_to(published_type, p));
            }
            return collect(parameter, buffer, published);
          };
          if (size > 1000 && variant != 3) {
            run(Setup{2, 1});
          } else {
            require_same_everywhere(run);
          }
        }
      }
    }
  });
}

TEST_CASE("a first step of Adam moves each parameter by the learning rate against the gradient's sign") {
  const Tensor gradient(DType::f16, {1e-3F, -5.0F, 0.0F});
  Tensor parameter(DType::f32, {1.0F, 1.0F, 1.0F});
  Tensor first(DType::f32, {0.0F, 0.0F, 0.0F});
  Tensor second(DType::f32, {0.0F, 0.0F, 0.0F});
  AdamUpdate op;
  op.parameter = parameter.view();
  op.first_moment = first.view();
  op.second_moment = second.view();
  op.gradient = gradient.view();
  op.learning_rate = 0.01F;
  op.step_size = 0.01F / 0.1F;
  op.bias_correction2_sqrt = std::sqrt(0.001F);
  Setup{}.run(op);
  REQUIRE(parameter.get(0) == Approx(0.99).epsilon(1e-5));
  REQUIRE(parameter.get(1) == Approx(1.01).epsilon(1e-5));
  REQUIRE(parameter.get(2) == 1.0F);
}
