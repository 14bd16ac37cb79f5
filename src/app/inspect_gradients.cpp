#include "app/inspect_gradients.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "comm/threads.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "core/process.h"
#include "data/source.h"
#include "device/cpu/instruction_set.h"
#include "inference/setup.h"
#include "train/agreements.h"
#include "train/compute.h"
#include "train/gradient_sizes.h"
#include "train/plan.h"
#include "train/session.h"

namespace zt {

namespace {

using Json = nlohmann::ordered_json;

// Of fp16: the smallest normal and the smallest subnormal number are 2 to these.
constexpr int smallest_normal = -14, smallest_subnormal = -24;

struct Column {
  std::string precision;
  double scale = 1.0;
  GradientSizes sizes;

  std::string name() const {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%s, scale %.9g", precision.c_str(), scale);
    return precision == "fp32" ? precision : text.data();
  }
};

struct Pictures {
  std::int64_t first_sample = 0, samples = 0;  // the first one's number, from 1
  std::vector<Column> columns;
};

// As the run computed, where this processor can, unless --set says otherwise.
void limit_instruction_set(const NativeCheckpoint& checkpoint, const DeviceSettings& settings) {
  std::string level = settings.instruction_set;
  const Json device = checkpoint.manifest().config.value("device", Json::object());
  if (level == "auto" && device.is_object()) level = device.value("instruction_set", level);
  if (const auto asked = cpu::instruction_level_from(level)) cpu::limit_instruction_set(*asked);
}

// One rank at stage 0, one micro-batch a step: the gradient at rest is the micro-batch's own.
Settings settings_for(const ResolvedConfig& config, const Dataset& dataset, const char* precision) {
  Settings settings = config.settings;
  settings.precision = {precision, "", ""};
  settings.batch.micro = std::max<std::int64_t>(1, settings.batch.micro);
  settings.batch = {settings.batch.micro, settings.batch.micro, 1};
  settings.zero = {};
  settings.training.checkpoint_interval = 0;
  settings.training.report_delay = 0;
  settings.device.type = "cpu";
  if (settings.device.threads == 0) settings.device.threads = std::max(1, allowed_core_count());
  if (dataset.vocab_size > 0) settings.model.gpt.vocab_size = dataset.vocab_size;
  return settings;
}

Pictures run_passes(const NativeCheckpoint& checkpoint, const GradientRequest& request, const ResolvedConfig& config,
                    Communicator& host) {
  const Dataset dataset = open_dataset(config.settings);
  Pictures pictures;
  std::vector<float> exact;
  // The gradient at each scale in one precision.
  const auto run = [&](const char* precision, const std::vector<double>& scales) {
    const Settings settings = settings_for(config, dataset, precision);
    const ComputeChoice choice = choose_compute(host, settings.device, find_neighbours(host));
    const Plan plan =
        make_plan(settings, 0, 1, planned_ranks_on_node(choice, host), scratch_of_device(settings.device));
    const cpu::CpuDeviceOptions cpu_options;
    Compute compute(choice, settings, host, plan.operations, &cpu_options);
    Session session(settings, compute.device(), compute.communicator(), dataset.training.get(), nullptr);
    session.load(checkpoint.directory());
    // As if the next step were the one attempted last: its passes are what can be run again.
    TrainingProgress next = checkpoint.manifest().progress;
    ++next.steps.attempted;
    next.samples += settings.batch.train;
    session.set_progress(next);
    pictures.samples = settings.batch.train;
    pictures.first_sample = next.samples - settings.batch.train + 1;
    for (const double scale : scales) {
      session.replay_micro_steps(compute.device(), scale);
      std::vector<float> gradient = gradient_of(session, request.pattern);
      pictures.columns.push_back({precision, scale, sizes_of(gradient, exact)});
      if (exact.empty()) exact = std::move(gradient);
    }
  };
  run("fp32", {1.0});
  std::vector<double> scales = {1.0};
  for (const double scale : request.scales) {
    if (std::find(scales.begin(), scales.end(), scale) == scales.end()) scales.push_back(scale);
  }
  run("fp16", scales);
  if (exact.empty()) throw UserError("--tensors \"" + request.pattern + "\": no trained tensor has this in its name");
  return pictures;
}

Json json_of(const NativeCheckpoint& checkpoint, const Pictures& pictures) {
  Json columns = Json::array();
  for (const Column& column : pictures.columns) {
    const GradientSizes& sizes = column.sizes;
    Json by_exponent = Json::object();
    for (int exponent = GradientSizes::highest; exponent >= GradientSizes::lowest; --exponent) {
      if (const std::int64_t count = sizes.with_exponent(exponent); count > 0)
        by_exponent[std::to_string(exponent)] = count;
    }
    columns.push_back({{"precision", column.precision},
                       {"loss_scale", column.scale},
                       {"not_finite", sizes.not_finite},
                       {"normal_in_fp16", sizes.between(smallest_normal, GradientSizes::highest + 1)},
                       {"below_normal_in_fp16", sizes.between(GradientSizes::lowest, smallest_normal)},
                       {"zeros", sizes.zeros},
                       {"vanished", sizes.vanished},
                       {"by_exponent", std::move(by_exponent)}});
  }
  return {{"checkpoint", checkpoint.directory()},
          {"first_sample", pictures.first_sample},
          {"samples", pictures.samples},
          {"elements", pictures.columns.front().sizes.elements},
          {"columns", std::move(columns)}};
}

// Three columns fit a terminal; more make the lines longer.
constexpr int label_width = 14, count_width = 9, bar_width = 10;

void print_bars(const std::string& label, const std::vector<std::int64_t>& counts, std::int64_t most) {
  std::string line = label;
  line.resize(static_cast<std::size_t>(label_width), ' ');
  for (const std::int64_t count : counts) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%*s", count_width, count == 0 ? "." : std::to_string(count).c_str());
    const auto length = static_cast<std::size_t>((count * bar_width + most - 1) / std::max<std::int64_t>(1, most));
    std::string bar(length, '#');
    bar.resize(static_cast<std::size_t>(bar_width), ' ');
    line += number.data() + (" " + bar) + "  ";
  }
  std::puts(line.substr(0, line.find_last_not_of(' ') + 1).c_str());
}

template <typename Value>
void print_row(const char* label, const std::vector<Column>& columns, Value&& value) {
  std::string line = label;
  line.resize(static_cast<std::size_t>(label_width), ' ');
  for (const Column& column : columns) {
    std::string text = value(column);
    if (text.size() < count_width) text.insert(0, count_width - text.size(), ' ');
    text.resize(std::max(text.size(), static_cast<std::size_t>(count_width + 1 + bar_width)), ' ');
    line += text + "  ";
  }
  std::puts(line.substr(0, line.find_last_not_of(' ') + 1).c_str());
}

void print(const NativeCheckpoint& checkpoint, const GradientRequest& request, const Pictures& pictures) {
  const auto& columns = pictures.columns;
  const std::int64_t elements = columns.front().sizes.elements;
  std::printf("checkpoint    %s\n", checkpoint.directory().c_str());
  std::printf("micro-batch   samples %lld to %lld\n", static_cast<long long>(pictures.first_sample),
              static_cast<long long>(pictures.first_sample + pictures.samples - 1));
  std::printf("gradient      %lld elements%s, by size, loss scale included\n\n", static_cast<long long>(elements),
              request.pattern.empty() ? "" : (" of *" + request.pattern + "*").c_str());

  int first = GradientSizes::lowest, last = GradientSizes::highest;
  const auto is_empty = [&](int exponent) {
    return std::all_of(columns.begin(), columns.end(),
                       [&](const Column& column) { return column.sizes.with_exponent(exponent) == 0; });
  };
  while (last > smallest_normal && is_empty(last)) --last;
  while (first < smallest_subnormal && is_empty(first)) ++first;
  // The long tail of what fp16 cannot hold anyhow is one line.
  constexpr int shown_below = 8;
  first = std::max(first, smallest_subnormal - shown_below);
  std::int64_t most = 1;
  for (const Column& column : columns) {
    for (int exponent = first; exponent <= last; ++exponent)
      most = std::max(most, column.sizes.with_exponent(exponent));
  }
  print_row("", columns, [](const Column& column) { return column.name(); });
  for (int exponent = last; exponent >= first; --exponent) {
    std::vector<std::int64_t> counts;
    for (const Column& column : columns) counts.push_back(column.sizes.with_exponent(exponent));
    print_bars("2^" + std::to_string(exponent), counts, most);
    if (exponent == smallest_normal) std::puts("-- below: subnormal in fp16, ever fewer digits");
    if (exponent == smallest_subnormal) std::puts("-- below: 0 in fp16");
  }
  std::vector<std::int64_t> tail;
  for (const Column& column : columns) tail.push_back(column.sizes.between(GradientSizes::lowest, first));
  if (std::any_of(tail.begin(), tail.end(), [](std::int64_t count) { return count > 0; }))
    print_bars("smaller", tail, std::max(most, *std::max_element(tail.begin(), tail.end())));

  const auto share = [&](std::int64_t count) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%*lld %6.2f %%", count_width, static_cast<long long>(count),
                  100.0 * static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, elements)));
    return std::string(text.data());
  };
  std::puts("");
  print_row("not finite", columns, [&](const Column& column) { return share(column.sizes.not_finite); });
  print_row("below 2^-14", columns,
            [&](const Column& column) { return share(column.sizes.between(GradientSizes::lowest, smallest_normal)); });
  print_row("zero", columns, [&](const Column& column) { return share(column.sizes.zeros); });
  print_row("vanished", columns,
            [&](const Column& column) { return column.precision == "fp32" ? "" : share(column.sizes.vanished); });
}

}  // namespace

void inspect_gradients(const NativeCheckpoint& checkpoint, const GradientRequest& request) {
  const ResolvedConfig config = config_of_checkpoint(checkpoint, {}, request.sets);
  limit_instruction_set(checkpoint, config.settings.device);
  Pictures pictures;
  run_ranks_as_threads(
      1, 0, [&](Communicator& communicator) { pictures = run_passes(checkpoint, request, config, communicator); });
  if (request.json) {
    std::puts(json_text(json_of(checkpoint, pictures), 2).c_str());
  } else {
    print(checkpoint, request, pictures);
  }
}

}  // namespace zt
