// The optimizers against a plain transcription of their comments in operations.h, to the bit.
#include <algorithm>
#include <type_traits>

#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

// Not inlined arithmetic in one expression: every operation is rounded to float. s: the moments.
void one_step_plainly(const AdamUpdate& op, float gradient, float& p, std::vector<float>& s) {
  float g = gradient * op.factor;
  if (op.decoupled) {
    const float decay = op.learning_rate * op.weight_decay;
    p = p * (1.0F - decay);
  } else if (op.weight_decay != 0.0F) {
    const float decay = op.weight_decay * p;
    g = g + decay;
  }
  const float change = (g - s[0]) * op.one_minus_beta1;
  s[0] = s[0] + change;
  const float square = g * g;
  const float kept = s[1] * op.beta2;
  const float added = square * op.one_minus_beta2;
  s[1] = kept + added;
  if (s.size() == 3) s[2] = std::max(s[2], s[1]);
  const float root = std::sqrt(s.back()) / op.bias_correction2_sqrt;
  const float step = op.step_size * s[0];
  p = p - step / (root + op.epsilon);
}

void one_step_plainly(const SgdUpdate& op, float gradient, float& p, std::vector<float>& s) {
  float g = gradient * op.factor;
  if (op.weight_decay != 0.0F) {
    const float decay = op.weight_decay * p;
    g = g + decay;
  }
  if (!s.empty()) {
    if (op.first_step) {
      s[0] = g;
    } else {
      const float kept = op.momentum * s[0];
      const float added = (1.0F - op.dampening) * g;
      s[0] = kept + added;
    }
    const float ahead = op.momentum * s[0];
    g = op.nesterov ? g + ahead : s[0];
  }
  const float step = op.learning_rate * g;
  p = p - step;
}

void one_step_plainly(const AdagradUpdate& op, float gradient, float& p, std::vector<float>& s) {
  float g = gradient * op.factor;
  if (op.weight_decay != 0.0F) {
    const float decay = op.weight_decay * p;
    g = g + decay;
  }
  const float square = g * g;
  s[0] = s[0] + square;
  const float step = op.learning_rate * g;
  p = p - step / (std::sqrt(s[0]) + op.epsilon);
}

void one_step_plainly(const LionUpdate& op, float gradient, float& p, std::vector<float>& s) {
  const float g = gradient * op.factor;
  const float decay = op.learning_rate * op.weight_decay;
  p = p * (1.0F - decay);
  const float kept = s[0] * op.beta1;
  const float added = g * op.one_minus_beta1;
  const float direction = kept + added;
  if (direction > 0.0F) p = p - op.learning_rate;
  if (direction < 0.0F) p = p + op.learning_rate;
  const float remembered = s[0] * op.beta2;
  const float learned = g * op.one_minus_beta2;
  s[0] = remembered + learned;
}

void give_moments(AdamUpdate& op, const std::vector<TensorView>& moments) {
  op.first_moment = moments[0];
  op.second_moment = moments[1];
  op.largest_second_moment = moments.size() == 3 ? moments[2] : TensorView{};
}
void give_moments(SgdUpdate& op, const std::vector<TensorView>& moments) {
  op.momentum_buffer = moments.empty() ? TensorView{} : moments[0];
}
void give_moments(AdagradUpdate& op, const std::vector<TensorView>& moments) { op.sum_of_squares = moments[0]; }
void give_moments(LionUpdate& op, const std::vector<TensorView>& moments) { op.momentum = moments[0]; }

struct DTypes {
  DType parameter = DType::f32, gradient = DType::f32, published = DType::f32;
  std::vector<DType> moments;
  bool with_copy = true;
};

// Runs the operation on random values and holds every output against the plain step. One moment at most may be
// negative.
template <class Op>
void require_plain_step(Random& random, Op op, const DTypes& types, std::int64_t size, bool everywhere) {
  const std::vector<float> parameter_values = rounded(types.parameter, normals(random, size));
  const std::vector<float> gradient_values = rounded(types.gradient, normals(random, size, 10.0F));
  std::vector<std::vector<float>> moment_values;
  for (std::size_t k = 0; k < types.moments.size(); ++k) {
    std::vector<float> values = normals(random, size, 0.1F);
    const bool squares = k > 0 || std::is_same_v<Op, AdagradUpdate>;
    for (float& value : values) value = squares ? value * value : value;
    moment_values.push_back(rounded(types.moments[k], values));
  }
  const auto run = [&](Setup setup) {
    Tensor parameter(types.parameter, parameter_values, setup.offset);
    const Tensor gradient(types.gradient, gradient_values, setup.offset);
    Tensor published(types.published, size, setup.offset);
    std::vector<Tensor> moments;
    std::vector<TensorView> views;
    moments.reserve(types.moments.size());
    for (std::size_t k = 0; k < types.moments.size(); ++k) {
      moments.emplace_back(types.moments[k], moment_values[k], setup.offset);
      views.push_back(moments.back().view());
    }
    op.parameter = parameter.view();
    op.gradient = gradient.view();
    op.published = types.with_copy ? published.view() : TensorView{};
    give_moments(op, views);
    setup.run(op);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      float p = parameter_values[at];
      std::vector<float> s;
      for (const auto& values : moment_values) s.push_back(values[at]);
      one_step_plainly(op, gradient_values[at], p, s);
      const float stored = round_to(types.parameter, p);
      bool equal = parameter.get(i) == stored;
      for (std::size_t k = 0; k < s.size(); ++k) equal = equal && moments[k].get(i) == round_to(types.moments[k], s[k]);
      // The copy is made from the parameter as it is stored.
      if (types.with_copy) equal = equal && published.get(i) == round_to(types.published, stored);
      if (!equal) {
        INFO("element " << i << " of " << size << ": " << parameter.get(i) << ", expected " << stored);
        REQUIRE(equal);
      }
    }
    Bytes bytes = collect(parameter, published);
    for (const Tensor& moment : moments) {
      const Bytes more = collect(moment);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  };
  if (everywhere) {
    require_same_everywhere(run);
  } else {
    run(Setup{2, 1});
  }
}

// Every combination of dtypes of parameter, moments (each on its own), gradient and copy, at a size with a rest; and
// some combinations at all sizes.
template <class Op, class MakeOp>
void require_plain_steps(Random& random, std::size_t moments, const MakeOp& make) {
  std::size_t combinations = 3 * 3 * 4;
  for (std::size_t k = 0; k < moments; ++k) combinations *= 3;
  const auto types_of = [&](std::size_t number) {
    DTypes types;
    const auto next = [&](std::size_t base) {
      const std::size_t digit = number % base;
      number /= base;
      return digit;
    };
    types.parameter = all_dtypes[next(3)];
    types.gradient = all_dtypes[next(3)];
    const std::size_t copy = next(4);
    types.with_copy = copy < 3;
    types.published = all_dtypes[copy % 3];
    for (std::size_t k = 0; k < moments; ++k) types.moments.push_back(all_dtypes[next(3)]);
    return types;
  };
  for (std::size_t number = 0; number < combinations; ++number) {
    require_plain_step<Op>(random, make(), types_of(number), 531, false);
  }
  for (const std::int64_t size : {0, 1, 16, 50, 333, 512, 40001}) {
    DTypes in_floats = types_of(0);
    in_floats.gradient = all_dtypes[random() % 3];
    in_floats.published = all_dtypes[random() % 3];
    require_plain_step<Op>(random, make(), in_floats, size, true);
    require_plain_step<Op>(random, make(), types_of(random() % combinations), size, true);
  }
}

}  // namespace

TEST_CASE("Adam, AdamW and AMSGrad equal their definition to the bit in every combination of dtypes") {
  Random random(30);
  for_instruction_sets([&] {
    for (const std::size_t moments : {2U, 3U}) {
      require_plain_steps<AdamUpdate>(random, moments, [&] {
        AdamUpdate op;
        op.factor = 0.37F;
        op.learning_rate = 3e-2F;
        op.step_size = 3e-2F / 0.19F;
        op.bias_correction2_sqrt = random() % 4 == 0 ? 1.0F : 0.0447F;
        op.one_minus_beta1 = static_cast<float>(1.0 - 0.9);
        op.one_minus_beta2 = static_cast<float>(1.0 - 0.999);
        op.weight_decay = random() % 3 == 0 ? 0.0F : 0.1F;
        op.decoupled = random() % 2 == 0;
        return op;
      });
    }
  });
}

TEST_CASE("SGD equals its definition to the bit, with and without momentum, in every combination of dtypes") {
  Random random(31);
  for_instruction_sets([&] {
    for (const std::size_t moments : {0U, 1U}) {
      for (int variant = 0; variant < 4; ++variant) {
        require_plain_steps<SgdUpdate>(random, moments, [&] {
          SgdUpdate op;
          op.factor = 0.61F;
          op.learning_rate = 0.05F;
          op.momentum = moments == 0 ? 0.0F : 0.9F;
          op.nesterov = (variant & 1) != 0;
          op.first_step = (variant & 2) != 0;
          op.dampening = op.nesterov ? 0.0F : 0.3F;
          op.weight_decay = random() % 2 == 0 ? 0.0F : 0.01F;
          return op;
        });
      }
    }
  });
}

TEST_CASE("Adagrad equals its definition to the bit in every combination of dtypes") {
  Random random(32);
  for_instruction_sets([&] {
    require_plain_steps<AdagradUpdate>(random, 1, [&] {
      AdagradUpdate op;
      op.factor = 0.43F;
      op.learning_rate = 0.01F;
      op.weight_decay = random() % 2 == 0 ? 0.0F : 0.02F;
      op.epsilon = random() % 2 == 0 ? 1e-10F : 1e-3F;
      return op;
    });
  });
}

TEST_CASE("Lion equals its definition to the bit in every combination of dtypes") {
  Random random(33);
  for_instruction_sets([&] {
    require_plain_steps<LionUpdate>(random, 1, [&] {
      LionUpdate op;
      op.factor = 0.43F;
      op.learning_rate = 0.01F;
      op.beta2 = 0.99F;
      op.one_minus_beta1 = static_cast<float>(1.0 - 0.9);
      op.one_minus_beta2 = static_cast<float>(1.0 - 0.99);
      op.weight_decay = random() % 2 == 0 ? 0.0F : 0.02F;
      return op;
    });
  });
}

TEST_CASE("Lion moves by the learning rate against the sign, and stays where nothing pulls") {
  const Tensor gradient(DType::f32, {3.0F, -1e-30F, 0.0F, -0.0F, 1.0F});
  Tensor parameter(DType::f32, {1.0F, 1.0F, 1.0F, 1.0F, 1.0F});
  Tensor momentum(DType::f32, {0.0F, 0.0F, 0.0F, 0.0F, -0.5F});
  LionUpdate op;
  op.parameter = parameter.view();
  op.momentum = momentum.view();
  op.gradient = gradient.view();
  op.learning_rate = 0.25F;
  Setup{}.run(op);
  // Of the last the momentum outweighs the gradient: 0.9 * -0.5 + 0.1 * 1 is negative.
  REQUIRE(parameter.values() == std::vector<float>{0.75F, 1.25F, 1.0F, 1.0F, 1.25F});
}

namespace {

// The direction of LAMB as operations.h has it, every operation rounded to float.
float direction_plainly(const LambDirection& rule, float p, float m, float v) {
  const float squares = v / rule.bias_correction2;
  const float inside = squares + rule.epsilon;
  const float divisor = rule.epsilon_inside_root ? std::sqrt(inside) : std::sqrt(squares) + rule.epsilon;
  const float mean = m / rule.bias_correction1;
  const float decay = rule.weight_decay * p;
  return mean / divisor + decay;
}

// Both operations on random values against the plain steps.
void require_plain_lamb(Random& random, const LambDirection& rule, DType parameter_type, DType moment_type,
                        DType gradient_type, DType published_type, std::int64_t size) {
  const auto squared = [](std::vector<float> values) {
    for (float& value : values) value *= value;
    return values;
  };
  const std::vector<float> p = rounded(parameter_type, normals(random, size));
  const std::vector<float> m = rounded(moment_type, normals(random, size, 0.1F));
  const std::vector<float> v = rounded(moment_type, squared(normals(random, size, 0.1F)));
  const std::vector<float> g = rounded(gradient_type, normals(random, size, 10.0F));
  const float ratio = 1.7F;
  require_same_everywhere([&](Setup setup) {
    Tensor parameter(parameter_type, p, setup.offset), published(published_type, size, setup.offset);
    Tensor first(moment_type, m, setup.offset), second(moment_type, v, setup.offset);
    Tensor direction(DType::f32, size, setup.offset);
    const Tensor gradient(gradient_type, g, setup.offset);
    LambMoments moments;
    moments.parameter = parameter.view();
    moments.first_moment = first.view();
    moments.second_moment = second.view();
    moments.direction = direction.view();
    moments.gradient = gradient.view();
    moments.rule = rule;
    moments.factor = 0.37F;
    setup.run(moments);
    LambUpdate update;
    update.parameter = parameter.view();
    update.first_moment = first.view();
    update.second_moment = second.view();
    update.published = published.view();
    update.rule = rule;
    update.learning_rate = 0.03F;
    update.trust_ratio = &ratio;
    Bytes bytes = collect(parameter, first, second, direction);
    REQUIRE(parameter.values() == p);
    setup.run(update);
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float scaled = g[at] * moments.factor;
      const float kept = m[at] * moments.beta1, added = scaled * moments.one_minus_beta1;
      const float mean = kept + added;
      const float square = scaled * scaled;
      const float kept_squares = v[at] * moments.beta2, added_squares = square * moments.one_minus_beta2;
      const float squares = kept_squares + added_squares;
      const float stored_mean = round_to(moment_type, mean), stored_squares = round_to(moment_type, squares);
      const float step = update.learning_rate * ratio;
      const float move = step * direction_plainly(rule, p[at], stored_mean, stored_squares);
      const float moved = round_to(parameter_type, p[at] - move);
      const bool equal = first.get(i) == stored_mean && second.get(i) == stored_squares &&
                         direction.get(i) == direction_plainly(rule, p[at], mean, squares) &&
                         parameter.get(i) == moved && published.get(i) == round_to(published_type, moved);
      if (!equal) {
        INFO("element " << i << " of " << size << ": " << parameter.get(i) << ", expected " << moved);
        REQUIRE(equal);
      }
    }
    const Bytes after = collect(parameter, first, second, published);
    bytes.insert(bytes.end(), after.begin(), after.end());
    return bytes;
  });
}

}  // namespace

TEST_CASE("LAMB's moments, directions and steps equal their definition to the bit in every combination of dtypes") {
  Random random(34);
  for_instruction_sets([&] {
    for (const DType parameter : all_dtypes) {
      for (const DType moment : all_dtypes) {
        for (const DType gradient : all_dtypes) {
          LambDirection rule{.bias_correction1 = 0.19F, .bias_correction2 = 0.002F, .epsilon = 1e-6F};
          rule.epsilon_inside_root = random() % 2 == 0;
          rule.weight_decay = random() % 3 == 0 ? 0.0F : 0.1F;
          const std::int64_t size = random() % 2 == 0 ? 531 : 50;
          require_plain_lamb(random, rule, parameter, moment, gradient, all_dtypes[random() % 3], size);
        }
      }
    }
    for (const std::int64_t size : {0, 1, 16, 333, 40001}) {
      require_plain_lamb(random, {}, DType::f32, DType::f32, DType::bf16, DType::bf16, size);
    }
  });
}

TEST_CASE("LAMB's trust ratios are quotients of norms, within bounds, and 1 where a norm is 0") {
  // Norms of parameters and of directions.
  const std::vector<std::pair<float, float>> norms = {{3.0F, 4.0F}, {1.0F, 1e-3F}, {1e-4F, 1.0F},
                                                      {0.0F, 2.0F}, {2.0F, 0.0F},  {1e-30F, 1e-30F}};
  std::vector<Accumulator> squares(2 * norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const auto add = [](float norm, Accumulator& out) {
      const Tensor value(DType::f32, std::vector<float>{norm});
      Setup{}.run(SumSquares{.in = value.view(), .out = &out});
    };
    add(norms[i].first, squares[2 * i]);
    add(norms[i].second, squares[2 * i + 1]);
  }
  std::vector<float> ratios(norms.size());
  Setup{}.run(TrustRatios{.squares = squares.data(),
                          .out = ratios.data(),
                          .count = static_cast<std::int64_t>(norms.size()),
                          .least = 0.01,
                          .most = 10.0});
  REQUIRE(ratios == std::vector<float>{0.75F, 10.0F, 0.01F, 1.0F, 1.0F, 1.0F});
}

TEST_CASE("AMSGrad goes on dividing by the largest average of squares after the gradient has become small") {
  const Tensor large(DType::f32, {8.0F, 8.0F});
  const Tensor small(DType::f32, {0.5F, -0.5F});
  Tensor parameter(DType::f32, {1.0F, 1.0F});
  Tensor first(DType::f32, {0.0F, 0.0F});
  Tensor second(DType::f32, {0.0F, 0.0F});
  Tensor largest(DType::f32, {0.0F, 0.0F});
  AdamUpdate op;
  op.parameter = parameter.view();
  op.first_moment = first.view();
  op.second_moment = second.view();
  op.largest_second_moment = largest.view();
  op.beta2 = 0.5F;
  op.one_minus_beta2 = 0.5F;
  for (const Tensor* gradient : {&large, &small}) {
    op.gradient = gradient->view();
    Setup{}.run(op);
    REQUIRE(largest.values() == std::vector<float>{32.0F, 32.0F});
  }
  REQUIRE(second.get(0) < 17.0F);
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
