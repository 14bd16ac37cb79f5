// Whole training runs on emulated GPUs: one curve over stages and ranks, what is held and sent as planned, and the
// CPU's curve within what rounding explains. The backend is the shared object that ZEROTRAIN_CUDA_BACKEND names; ranks
// are threads, each with a GPU of its own.
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "catch_compat.h"
#include "comm/threads.h"
#include "device/device_decorator.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/curve.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

// Heads of 32, which 16-bit formats compute on tensor cores; 24 positions, so that tiles are not full.
Settings flash_gpt() {
  Settings settings = tiny_gpt();
  settings.model.gpt.n_layer = 2;
  settings.model.gpt.n_head = 2;
  settings.model.gpt.n_embd = 64;
  settings.model.gpt.n_positions = 24;
  settings.training.eval_steps = 1;
  return settings;
}

Settings in_precision(Settings settings, const std::string& preset) {
  settings.precision.preset = preset;
  settings.loss_scale.initial_scale_power = 8;
  return settings;
}

Settings on_gpu(Settings settings, const std::string& communicator) {
  settings.device.type = "cuda";
  settings.device.communicator = communicator;
  return settings;
}

void require_plan_is_kept(const Curve& curve) {
  CHECK(curve.held == curve.plan.memory);
  CHECK(curve.padding == curve.plan.padding);
  CHECK(curve.elements_sent == curve.elements_planned);
}

// The two backends round the same operations differently: in fp32 by the order of sums within products (u = 2^-24), in
// 16 bits by it and by where intermediate values are rounded (u = 2^-8 and 2^-11). The loss is a mean of logarithms
// of about 4, computed in fp32 from logits that carry a few roundings each, and its gradient steers the weights for
// three steps: 32 u of the loss is above that and far below what a wrong kernel does.
double tolerance_of(const std::string& preset) {
  const double unit = preset == "bf16" ? 0x1p-8 : preset == "fp16" ? 0x1p-11 : 0x1p-24;
  return 32.0 * unit;
}

void require_same_course(const Curve& gpu, const Curve& cpu, double tolerance) {
  REQUIRE(gpu.steps.size() == cpu.steps.size());
  for (std::size_t step = 0; step < gpu.steps.size(); ++step) {
    INFO("step " << step + 1);
    CHECK(gpu.steps[step].skipped == cpu.steps[step].skipped);
    CHECK(std::abs(gpu.steps[step].loss - cpu.steps[step].loss) <= tolerance * std::abs(cpu.steps[step].loss));
  }
  CHECK(std::abs(gpu.validation_loss - cpu.validation_loss) <= tolerance * std::abs(cpu.validation_loss));
}

// All stages at one number of ranks, over one communicator; returns stage 0's curve.
Curve require_stages_agree(const Settings& base, int ranks, const std::string& communicator) {
  const Dataset data = data_for(base);
  const Settings settings = on_gpu(base, communicator);
  const Curve reference = trace_curve(at(settings, ranks, 0), data, ranks);
  require_plan_is_kept(reference);
  for (int stage = 1; stage <= 3; ++stage) {
    INFO("stage " << stage << ", " << ranks << " ranks, " << communicator << ", " << base.precision.preset);
    const Curve curve = trace_curve(at(settings, ranks, stage), data, ranks);
    CHECK(curve.same_bits(reference));
    require_plan_is_kept(curve);
  }
  return reference;
}

// Counts by stream how often the host waits for an event of it.
class WaitCounter final : public DeviceDecorator {
 public:
  using DeviceDecorator::DeviceDecorator;
  Event record(Stream stream) override {
    const Event event = inner().record(stream);
    streams_[event.id] = stream;
    return event;
  }
  using Device::synchronize;
  void synchronize(Event event) override {
    if (event.id != 0) ++waits_.at(static_cast<std::size_t>(streams_.at(event.id)));
    inner().synchronize(event);
  }
  std::int64_t waits(Stream stream) const { return waits_.at(static_cast<std::size_t>(stream)); }
  void forget() { waits_ = {}; }

 private:
  std::map<std::int64_t, Stream> streams_;
  std::array<std::int64_t, stream_count> waits_{};
};

}  // namespace

TEST_CASE("On GPUs the host waits for computing once a step, however many micro-steps it has") {
  Settings settings = on_gpu(in_precision(with_batch(tiny_gpt(), 1, 4, 2), "fp32"), "nccl");
  settings.training.eval_interval = 0;
  const Dataset data = data_for(settings);
  for (int stage = 0; stage <= 3; ++stage) {
    for (const int delay : {0, 1}) {
      settings.zero.stage = stage;
      settings.training.report_delay = delay;
      std::mutex mutex;
      run_ranks_as_threads(2, 0, [&](Communicator& host) {
        const ComputeChoice choice = choose_compute(host, settings.device, find_neighbours(host));
        const Plan plan = make_plan(settings, host.rank(), 2, planned_ranks_on_node(choice, host),
                                    scratch_of_device(settings.device));
        Compute compute(choice, settings, host, plan.operations);
        WaitCounter device(compute.device());
        Session session(settings, device, compute.communicator(), data.training.get(), nullptr);
        session.initialize();
        device.forget();
        constexpr int steps = 3;
        int known = 0;
        for (int step = 0; step < steps; ++step) known += session.advance() ? 1 : 0;
        const std::lock_guard lock(mutex);
        INFO("stage " << stage << ", delay " << delay);
        CHECK(known == steps - delay);
        CHECK(device.waits(Stream::compute) == known);
        CHECK(device.waits(Stream::gather) == 0);
        CHECK(device.waits(Stream::reduce) == 0);
        // A micro-batch's place on the host is free again when the one before the last has been copied.
        CHECK(device.waits(Stream::copy) <= steps * settings.batch.accumulation);
      });
    }
  }
}

TEST_CASE("On GPUs a loss read a step late leaves the curve as it is") {
  for (int stage = 0; stage <= 3; ++stage) {
    INFO("stage " << stage);
    Settings settings = on_gpu(in_precision(with_batch(tiny_gpt(), 1, 2, 2), "bf16"), "nccl");
    settings.bf16_check_grad_overflow = false;
    settings.zero.stage = stage;
    settings.training.max_steps = 4;
    const Dataset data = data_for(settings);
    const Curve at_once = trace_curve(settings, data, 2);
    settings.training.report_delay = 1;
    const Curve late = trace_curve(settings, data, 2);
    CHECK(late.same_bits(at_once));
    require_plan_is_kept(late);
  }
}

TEST_CASE("On GPUs all stages compute the same bits in every precision, and follow the CPU's curve") {
  for (const std::string preset : {"fp32", "bf16", "fp16"}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const bool gpt : {true, false}) {
        INFO(preset << ", " << ranks << " ranks, " << (gpt ? "gpt" : "mlp"));
        const Settings model = gpt ? flash_gpt() : tiny_mlp();
        const Settings settings = in_precision(with_batch(model, 1, ranks % 2 == 0 ? 2 : 1, ranks), preset);
        const Curve gpu = require_stages_agree(settings, ranks, ranks == 1 ? "staged" : "nccl");
        CHECK(gpu.device.starts_with("sm_"));
        require_same_course(gpu, trace_curve(settings, data_for(settings), ranks), tolerance_of(preset));
      }
    }
  }
}

TEST_CASE("On GPUs the number of ranks does not change a bit, nor does the way that data take between them") {
  Settings settings = in_precision(flash_gpt(), "bf16");
  settings.batch = {.train = 12, .micro = 1, .accumulation = 12};
  settings.precision.grad_accum_dtype = "fp32";
  settings.training.max_steps = 2;
  const Dataset data = data_for(settings);
  const Curve reference = trace_curve(at(on_gpu(settings, "staged"), 1, 0), data, 1);
  for (const int ranks : {2, 3, 4}) {
    for (const char* communicator : {"nccl", "staged"}) {
      INFO(ranks << " ranks, " << communicator);
      const Curve curve = trace_curve(at(on_gpu(settings, communicator), ranks, ranks % 4), data, ranks);
      CHECK(curve.same_bits(reference));
      require_plan_is_kept(curve);
    }
  }
}

TEST_CASE("On GPUs NCCL carries what the CPU's ranks would send: calls, elements and bytes") {
  const Settings settings = in_precision(with_batch(tiny_gpt(), 1, 2, 3), "bf16");
  const Dataset data = data_for(settings);
  for (int stage = 0; stage <= 3; ++stage) {
    INFO("stage " << stage);
    const Curve gpu = trace_curve(at(on_gpu(settings, "nccl"), 3, stage), data, 3);
    const Curve cpu = trace_curve(at(settings, 3, stage), data, 3);
    for (int kind = 0; kind < collective_kind_count; ++kind) {
      const CollectiveCount& a = gpu.counts.training.at(static_cast<std::size_t>(kind));
      const CollectiveCount& b = cpu.counts.training.at(static_cast<std::size_t>(kind));
      CHECK(a.calls == b.calls);
      CHECK(a.elements == b.elements);
      CHECK(a.bytes == b.bytes);
    }
  }
}

TEST_CASE("On GPUs dropout, recomputation, freezing and the apex levels keep one curve") {
  Settings dropout = in_precision(with_batch(flash_gpt(), 1, 2, 2), "bf16");
  dropout.model.gpt.embd_pdrop = dropout.model.gpt.resid_pdrop = dropout.model.gpt.attn_pdrop = 0.1;
  require_same_course(require_stages_agree(dropout, 2, "nccl"), trace_curve(dropout, data_for(dropout), 2),
                      tolerance_of("bf16"));
  dropout.checkpoint_every = 1;
  require_stages_agree(dropout, 2, "nccl");
  Settings frozen = in_precision(with_batch(tiny_gpt(), 1, 1, 2), "fp32");
  frozen.model.freeze = {"h.0", "*.bias"};
  require_stages_agree(frozen, 2, "nccl");
  for (const char* preset : {"O1", "O2", "O3", "autocast_bf16", "bf16_masters"}) {
    require_stages_agree(in_precision(with_batch(tiny_gpt(), 1, 1, 2), preset), 2, "nccl");
  }
}

TEST_CASE("On GPUs Muon's matrices go to a rank and back on the stream, and all stages keep one curve") {
  for (const auto& [preset, ranks] : {std::pair{"fp32", 1}, {"bf16", 2}, {"fp32", 4}}) {
    INFO(preset << ", " << ranks << " ranks");
    Settings settings = in_precision(with_batch(tiny_gpt(), 1, 1, ranks), preset);
    settings.optimizer.type = "Muon";
    settings.optimizer.momentum = 0.9;
    settings.optimizer.nesterov = true;
    settings.optimizer.learning_rate = 0.01;
    const Curve gpu = require_stages_agree(settings, ranks, ranks == 1 ? "staged" : "nccl");
    require_same_course(gpu, trace_curve(settings, data_for(settings), ranks), tolerance_of(preset));
    const Dataset data = data_for(settings);
    Settings late = on_gpu(settings, ranks == 1 ? "staged" : "nccl");
    late.zero.stage = 3;
    late.training.report_delay = 1;
    CHECK(trace_curve(late, data, ranks).same_bits(gpu));
    late.device.communicator = "staged";
    CHECK(trace_curve(late, data, ranks).same_bits(gpu));
  }
}

TEST_CASE("On GPUs overflowing steps are skipped as on the CPU, and the scale comes down alike") {
  Settings settings = in_precision(with_batch(tiny_mlp(), 2, 1, 2), "fp16");
  settings.loss_scale.initial_scale_power = 32;
  settings.loss_scale.hysteresis = 1;
  settings.training.max_steps = 24;
  const Curve gpu = require_stages_agree(settings, 2, "nccl");
  const Curve cpu = trace_curve(settings, data_for(settings), 2);
  CHECK(gpu.steps.front().skipped);
  CHECK(!gpu.steps.back().skipped);
  for (std::size_t step = 0; step < gpu.steps.size(); ++step) CHECK(gpu.steps[step].scale == cpu.steps[step].scale);
}

TEST_CASE("On GPUs the order of NCCL's own sums is repeated from run to run, and close to that of the ranks") {
  Settings settings = on_gpu(in_precision(with_batch(tiny_gpt(), 1, 2, 4), "fp32"), "nccl");
  const Dataset data = data_for(settings);
  const Curve exact = trace_curve(at(settings, 4, 2), data, 4);
  settings.training.fast_communication = true;
  const Curve fast = trace_curve(at(settings, 4, 2), data, 4);
  CHECK(fast.same_bits(trace_curve(at(settings, 4, 2), data, 4)));
  CHECK(fast.elements_sent == exact.elements_sent);
  require_same_course(fast, exact, 1e-5);
}

TEST_CASE("On GPUs local order is the same at stages 0 and 1, sent by NCCL or by the host, and close to the CPU's") {
  for (const char* preset : {"fp32", "bf16"}) {
    Settings settings = in_precision(with_batch(tiny_gpt(), 1, 3, 2), preset);
    settings.training.accumulation_order = AccumulationOrder::local;
    const Dataset data = data_for(settings);
    const Curve cpu = trace_curve(at(settings, 2, 1), data, 2);
    const Curve reference = trace_curve(at(on_gpu(settings, "nccl"), 2, 0), data, 2);
    require_plan_is_kept(reference);
    CHECK(reference.elements_sent == cpu.elements_sent);
    require_same_course(reference, cpu, tolerance_of(preset));
    for (const char* communicator : {"nccl", "staged"}) {
      INFO(preset << ", " << communicator);
      const Curve curve = trace_curve(at(on_gpu(settings, communicator), 2, 1), data, 2);
      CHECK(curve.same_bits(reference));
      require_plan_is_kept(curve);
    }
    Settings fast = on_gpu(settings, "nccl");
    fast.training.fast_communication = true;
    const Curve of_nccl = trace_curve(at(fast, 2, 1), data, 2);
    require_plan_is_kept(of_nccl);
    require_same_course(of_nccl, reference, 1e-5);
  }
}

TEST_CASE("On GPUs TF32 and fused GELU stay within their rounding of the CPU's curve") {
  Settings settings = in_precision(with_batch(flash_gpt(), 2, 1, 1), "fp32");
  const Curve cpu = trace_curve(settings, data_for(settings), 1);
  Settings fused = on_gpu(settings, "staged");
  fused.device.gelu_epilogue = true;
  require_same_course(trace_curve(fused, data_for(fused), 1), cpu, tolerance_of("fp32"));
  Settings tf32 = on_gpu(settings, "staged");
  tf32.device.tf32 = true;
  const Curve rounded = trace_curve(tf32, data_for(tf32), 1);
  require_same_course(rounded, cpu, 32.0 * 0x1p-11);
  CHECK(rounded.steps.back().loss != trace_curve(on_gpu(settings, "staged"), data_for(settings), 1).steps.back().loss);
}
