// Our gradients in 16 bits are as near to double precision as PyTorch's in the same formats
// (scripts/golden/precision.py).
#include "golden_training.h"

using namespace zt;

namespace {

// The first step's gradient of every tensor, at one rank, in parts of the loss scale.
golden::Weights first_gradient(const golden::GoldenFile& file, const std::string& preset, double scale,
                               std::int64_t head_rows) {
  const golden::OneBatch source(file);
  Settings settings = golden::settings_of(file, "sgd", source.samples(), 1, 0);
  settings.precision.preset = preset;
  settings.loss_scale.loss_scale = scale;
  settings.model.gpt.head_rows = head_rows;
  golden::Weights gradients;
  run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, 0, 1, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, &source, nullptr);
    visit_weights(session.engine(), session.states(), [&](const TensorPlace& tensor, std::int64_t, TensorView values) {
      const std::vector<float> from = file.floats("initial/" + tensor.name);
      device.run(Stream::compute, Cast{.in = {from.data(), values.count, DType::f32}, .out = values});
    });
    publish_weights(session.engine(), session.states());
    session.train_step();
    for (const TensorPlace& tensor : session.layout().tensors()) {
      const ConstTensorView sums =
          session.engine().summed_gradients(tensor.unit, tensor.segment).part(tensor.offset, tensor.count);
      std::vector<float> values(static_cast<std::size_t>(sums.count));
      device.run(Stream::compute, Cast{.in = sums, .out = {values.data(), sums.count, DType::f32}});
      for (const float value : values) gradients[tensor.name].push_back(static_cast<double>(value) / scale);
    }
  });
  return gradients;
}

}  // namespace

TEST_CASE("In every format we are at most as far from double precision as PyTorch is, and a tenth") {
  const golden::GoldenFile file("gpt");
  const golden::GoldenFile yardsticks("precision");
  const double fp16_scale = yardsticks.header().at("scale");
  for (const auto& item : yardsticks.header().at("distance").items()) {
    const bool scaled = precision_preset(item.key()).scales_loss();
    // Logits whole, and in parts: what those add up to is rounded once.
    for (const std::int64_t head_rows : {0, 3}) {
      const golden::Weights ours = first_gradient(file, item.key(), scaled ? fp16_scale : 1.0, head_rows);
      double squared_error = 0.0;
      double squares = 0.0;
      for (const auto& [tensor, values] : ours) {
        const std::vector<double> exact = file.doubles("gradient64/" + tensor);
        REQUIRE(values.size() == exact.size());
        for (std::size_t i = 0; i < exact.size(); ++i) {
          squared_error += (values[i] - exact[i]) * (values[i] - exact[i]);
          squares += exact[i] * exact[i];
        }
      }
      const double theirs = item.value();
      INFO(item.key() << ": ours " << std::sqrt(squared_error / squares) << ", PyTorch " << theirs);
      CHECK(std::sqrt(squared_error / squares) <= 1.1 * theirs);
      // Formats that are rounded to do show.
      if (item.key() != "fp32") CHECK(std::sqrt(squared_error / squares) >= 0.1 * theirs);
    }
  }
}
