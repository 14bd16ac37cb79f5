#include "train/curve.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "checkpoint/open_weights.h"
#include "checkpoint/saver.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "core/json.h"
#include "device/lazy_device.h"
#include "train/compute.h"
#include "train/session.h"
#include "train/trainer.h"

namespace zt {

namespace {

bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

Curve run_rank(Settings settings, const Dataset& dataset, Communicator& host, const CurveOptions& options) {
  Curve curve;
  const ComputeChoice choice = choose_compute(host, settings.device, find_neighbours(host));
  settings.device.type = choice.type;
  curve.device = choice.instruction_set(cpu::instruction_level());
  curve.plan = make_plan(settings, host.rank(), host.size(), planned_ranks_on_node(choice, host),
                         scratch_of_device(settings.device));
  const cpu::CpuDeviceOptions cpu_options{.misalignment = options.misalignment};
  Compute compute(choice, settings, host, curve.plan.operations, &cpu_options);
  Communicator& communicator = compute.communicator();
  LazyDevice lazy(compute.device(),
                  options.compute_late ? LazyDevice::Order::compute_late : LazyDevice::Order::all_late);
  Device& device = options.lazy || options.compute_late ? static_cast<Device&>(lazy) : compute.device();

  Session session(settings, device, communicator, dataset.training.get(), dataset.validation.get());
  if (options.resume_from.empty()) {
    session.initialize(open_pretrained(settings.model).get());
  } else {
    session.load(options.resume_from);
  }
  const auto add = [&](const StepOutcome& outcome) {
    curve.steps.push_back({outcome.loss, outcome.grad_norm, outcome.scale, outcome.decision.verdict != Verdict::apply,
                           outcome.decision.reason, static_cast<std::int64_t>(outcome.retried_scales.size())});
    return outcome.decision.verdict != Verdict::fail;
  };
  bool goes_on = true;
  while (goes_on && session.steps().attempted < settings.training.max_steps) {
    const auto outcome = session.advance();
    if (outcome) goes_on = add(*outcome);
  }
  while (goes_on && session.unread() > 0) goes_on = add(session.read_step());
  if (settings.training.eval_interval > 0) curve.validation_loss = session.evaluate().loss;
  curve.checksum = session.weights_checksum();
  if (!options.save_to.empty()) {
    session.wait_for_device();
    Manifest manifest;
    manifest.program = "curve";
    manifest.step = session.steps().attempted;
    manifest.world_size = communicator.size();
    manifest.stage = settings.zero.stage;
    manifest.precision = settings.precision.preset;
    manifest.progress = session.progress();
    manifest.weights_checksum = curve.checksum;
    manifest.data_samples = dataset.training->samples();
    manifest.config = nlohmann::ordered_json::object();
    Saver saver(session.engine(), session.states(), session.optimizer().moment_names(),
                {.checkpoints = options.save_to, .snapshot = session.checkpoint_snapshot()});
    saver.save(manifest);
    saver.finish();
  }
  curve.held = device.ledger().current();
  curve.padding = device.ledger().padding();
  for (const CollectiveCount& count : communicator.counts().training) curve.elements_sent += count.elements;
  curve.elements_planned = planned_elements(curve.plan, session.steps_here());
  curve.counts = communicator.counts();
  return curve;
}

}  // namespace

bool Curve::same_bits(const Curve& other) const {
  const bool steps_agree = std::equal(
      steps.begin(), steps.end(), other.steps.begin(), other.steps.end(), [](const CurveStep& a, const CurveStep& b) {
        return same(a.loss, b.loss) && same(a.scale, b.scale) && same(a.grad_norm, b.grad_norm) &&
               a.skipped == b.skipped && a.reason == b.reason && a.retries == b.retries;
      });
  return steps_agree && same(validation_loss, other.validation_loss) && checksum == other.checksum;
}

Curve trace_curve(const Settings& settings, const Dataset& dataset, int ranks, const CurveOptions& options) {
  std::mutex mutex;
  std::vector<Curve> curves(static_cast<std::size_t>(ranks));
  run_ranks_as_threads(ranks, options.ranks_per_node, [&](Communicator& communicator) {
    Curve curve = run_rank(settings, dataset, communicator, options);
    const std::lock_guard lock(mutex);
    curves.at(static_cast<std::size_t>(communicator.rank())) = std::move(curve);
  });
  for (const Curve& curve : curves) {
    if (!curve.same_bits(curves.front())) throw RunError("ranks of one run disagree on its curve");
  }
  return std::move(curves.front());
}

Settings at(const Settings& settings, int ranks, int stage) {
  Settings result = settings;
  const std::int64_t per_step = settings.batch.micro * ranks;
  if (settings.batch.train % per_step != 0) {
    throw UserError("a global batch of " + std::to_string(settings.batch.train) + " is not a multiple of " +
                    std::to_string(ranks) + " rank(s) x micro-batches of " + std::to_string(settings.batch.micro));
  }
  result.batch.accumulation = settings.batch.train / per_step;
  result.zero.stage = stage;
  return result;
}

}  // namespace zt
