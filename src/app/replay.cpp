// Runs one step of a run again, in one process, from the checkpoint before it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/replay_start.h"
#include "app/verbs.h"
#include "checkpoint/checksum.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/stored_type.h"
#include "comm/threads.h"
#include "config/resolve_again.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "core/process.h"
#include "data/message_text.h"
#include "device/cpu/instruction_set.h"
#include "train/agreements.h"
#include "train/compute.h"
#include "train/diagnosis.h"
#include "train/plan.h"
#include "train/session.h"
#include "zero/held_state.h"

namespace zt {

namespace {

struct Request {
  std::string run;
  std::int64_t step = 0;
  std::string tensor;  // whose values are shown; empty: none
  std::int64_t first = 0, count = 16;
  std::vector<std::string> sets;
  bool json = false;
};

// As a number of metrics.jsonl reads: nine digits, null where it is not finite.
Json as_recorded(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return std::stod(text.data());
}

Json values_json(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(as_recorded(static_cast<double>(value)));
  return list;
}

// UserError where the model has no such tensor, or the tensor no such element.
const TensorPlace& place_of(const Session& session, const Request& request) {
  const auto& places = session.layout().tensors();
  const auto place =
      std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.name == request.tensor; });
  if (place == places.end())
    throw UserError("--tensor: the model has no " + request.tensor + " (zerotrain inspect lists them)");
  if (request.first >= place->count) {
    throw UserError("--first " + std::to_string(request.first) + ": " + place->name + " has the elements 0 to " +
                    std::to_string(place->count - 1));
  }
  return *place;
}

// Elements [first, first + count) of a tensor in the session: weights, the step's gradient (the mean over the global
// batch, before clipping) and moments.
Json tensor_json(Session& session, const Request& request, const TensorPlace& place, double unscale) {
  const Layout& layout = session.layout();
  const std::int64_t first = request.first;
  const std::int64_t count = std::min(request.count, place.count - first);
  Device& device = session.engine().context().device;
  const auto floats_of = [&](ConstTensorView view) {
    std::vector<float> values(static_cast<std::size_t>(view.count));
    device.copy(Stream::compute, values.data(), view.data, view.bytes());
    device.synchronize(Stream::compute);
    if (view.dtype == DType::f32) return values;
    std::vector<std::byte> raw(static_cast<std::size_t>(view.bytes()));
    device.copy(Stream::compute, raw.data(), view.data, view.bytes());
    device.synchronize(Stream::compute);
    to_floats(stored_type(view.dtype), raw.data(), view.count, values.data());
    return values;
  };
  Json json = {{"tensor", place.name}, {"shape", place.shape}, {"first", first}};
  const auto names = session.optimizer().moment_names();
  for (int kind = held_weights; kind < static_cast<int>(names.size()); ++kind) {
    visit_updated_state(session.engine(), session.states(), kind, [&](const StateRun& run) {
      if (&layout.tensor(run.tensor) != &place) return;
      const std::string name = kind == held_weights ? "weights" : names[static_cast<std::size_t>(kind)];
      json[name] = values_json(floats_of(run.values.part(first, count)));
    });
  }
  if (is_trained(place.segment)) {
    const ConstTensorView sums = session.engine().summed_gradients(place.unit, place.segment);
    std::vector<float> gradient = floats_of(sums.part(place.offset + first, count));
    for (float& value : gradient) value = static_cast<float>(static_cast<double>(value) * unscale);
    json["gradient"] = values_json(gradient);
  }
  return json;
}

// Other data than those that the run had come in another order.
void tell_of_changed_data(const Request& request, const ReplayStart& start, std::int64_t samples) {
  if (start.samples && *start.samples != samples) {
    throw UserError("the training data have " + counted(samples, "sample") + ", and had " +
                    std::to_string(*start.samples) + " when " + request.run + " was trained: step " +
                    std::to_string(request.step) +
                    " took others then. Put the data back as they were, or name those with --set data.path=...");
  }
  if (!start.samples && start.samples_before && *start.samples_before != samples) {
    std::fprintf(stderr,
                 "notice: the training data have %lld samples, and had %lld at the checkpoint: if they have changed "
                 "since the run, the step differs\n",
                 static_cast<long long>(samples), static_cast<long long>(*start.samples_before));
  }
}

// Steps up to the one asked for, then all that is told of it.
Json run_again(const Request& request, ResolvedConfig config, const ReplayStart& start, Communicator& host) {
  const Dataset dataset = open_dataset(config.settings);
  tell_of_changed_data(request, start, dataset.training->samples());
  const ComputeChoice choice = choose_compute(host, config.settings.device, find_neighbours(host));
  Settings settings = config.settings;
  settings.device.type = choice.type;
  if (settings.device.threads == 0) settings.device.threads = std::max(1, allowed_core_count());
  settings.training.checkpoint_interval = 0;
  if (dataset.vocab_size > 0) settings.model.gpt.vocab_size = dataset.vocab_size;
  const Plan plan = make_plan(settings, 0, 1, planned_ranks_on_node(choice, host), scratch_of_device(settings.device));
  const cpu::CpuDeviceOptions cpu_options;
  Compute compute(choice, settings, host, plan.operations, &cpu_options);
  Session session(settings, compute.device(), compute.communicator(), dataset.training.get(), dataset.validation.get());
  if (start.checkpoint.empty()) {
    session.initialize(open_pretrained(settings.model).get());
  } else {
    session.load(start.checkpoint);
  }
  const TensorPlace* shown = request.tensor.empty() ? nullptr : &place_of(session, request);
  StepOutcome outcome;
  while (session.steps().attempted < request.step) {
    outcome = session.train_step();
    if (outcome.decision.verdict == Verdict::fail && session.steps().attempted < request.step)
      throw RunError("step " + std::to_string(outcome.step) + " ends the run: there is no step " +
                     std::to_string(request.step));
  }
  const double divisor = static_cast<double>(settings.batch.micro_batches()) / predivision(settings);
  Json json = {{"step", outcome.step},
               {"from", start.checkpoint.empty() ? Json("the beginning") : Json(start.checkpoint)},
               {"loss", as_recorded(outcome.loss)},
               {"grad_norm", as_recorded(outcome.grad_norm)},
               {"learning_rate", as_recorded(outcome.learning_rate)},
               {"loss_scale", as_recorded(outcome.scale)},
               {"skipped", outcome.decision.verdict != Verdict::apply},
               {"weights_checksum", checksum_text(session.weights_checksum())}};
  if (shown != nullptr) json["values"] = tensor_json(session, request, *shown, 1.0 / (outcome.scale * divisor));
  json["not_finite"] = nullptr;
  if (!std::isfinite(outcome.loss) || !std::isfinite(outcome.grad_norm))
    json["not_finite"] = diagnose_not_finite(session, compute.device(), outcome.scale);
  return json;
}

// Fields of metrics.jsonl that the replay computed otherwise.
Json differences(const Json& replayed, const Json& record) {
  Json found = Json::object();
  for (const char* key : {"loss", "grad_norm", "learning_rate", "loss_scale", "skipped"}) {
    if (!record.contains(key)) continue;
    const Json& there = record.at(key);
    // A skipped step has no norm in the record.
    if (std::string(key) == "grad_norm" && there.is_null()) continue;
    if (there != replayed.at(key)) found[key] = {{"record", there}, {"replayed", replayed.at(key)}};
  }
  return found;
}

void print(const Json& json) {
  for (const char* key :
       {"step", "from", "loss", "grad_norm", "learning_rate", "loss_scale", "skipped", "weights_checksum"}) {
    const Json& value = json.at(key);
    std::printf("%-17s %s\n", key, (value.is_string() ? value.get<std::string>() : value.dump()).c_str());
  }
  if (!json.at("not_finite").is_null())
    std::printf("%-17s %s\n", "not finite", json.at("not_finite").get<std::string>().c_str());
  const Json& record = json.at("record");
  if (record.is_null()) {
    std::puts("metrics.jsonl has no record of this step");
  } else if (record.empty()) {
    std::puts("the same as in metrics.jsonl, to the last digit");
  } else {
    for (const auto& [key, values] : record.items()) {
      std::printf("differs: %s is %s in metrics.jsonl\n", key.c_str(), values.at("record").dump().c_str());
    }
  }
  if (!json.contains("values")) return;
  for (const auto& [name, value] : json.at("values").items())
    std::printf("%-17s %s\n", name.c_str(), (value.is_string() ? value.get<std::string>() : value.dump()).c_str());
}

}  // namespace

int replay(int argc, const char* const* argv) {
  CLI::App app(
      "Runs one step of a run again, to the bit, in one process, from the checkpoint before it. 1: it differs from "
      "what metrics.jsonl has.",
      "zerotrain replay");
  app.footer(
      "Examples:\n"
      "  zerotrain replay runs/gpt --step 12\n"
      "  zerotrain replay runs/gpt --step 12 --tensor h.0.attn.c_attn.weight --first 100 --count 8\n"
      "  zerotrain replay runs/gpt --step 12 --json");
  Request request;
  app.add_option("run", request.run, "The run's directory")->type_name("DIR")->required();
  app.add_option("--step", request.step, "The step to run, counted from 1 as in metrics.jsonl")
      ->type_name("K")
      ->required()
      ->check(whole_number(1));
  app.add_option("--tensor", request.tensor,
                 "Show values of this tensor: the weights after the step, the gradient, the moments")
      ->type_name("NAME");
  app.add_option("--first", request.first, "With --tensor: the first element that is shown, counted from 0")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str();
  app.add_option("--count", request.count, "With --tensor: how many elements are shown")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("-s,--set", request.sets,
                 "One key laid over the run's config: a.b.c=VALUE, as data.path=moved.txt or device.threads=4")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--json", request.json, "One JSON object in place of the lines");
  if (!parse_verb(app, argc, argv)) return 0;
  const ReplayStart start = find_replay_start(request.run, request.step);
  if (!start.notice.empty()) std::fprintf(stderr, "notice: %s\n", start.notice.c_str());
  // Memory and speed of one process: the stage plays no part.
  std::vector<std::string> sets = {"zero_optimization.stage=0", R"(device={"type":"cpu"})"};
  sets.insert(sets.end(), request.sets.begin(), request.sets.end());
  ResolvedConfig config = resolve_again(start.config, 1, sets);
  const Json device = start.config.value("device", Json::object());
  const std::string level = device.value("instruction_set", "auto");
  if (const auto asked = cpu::instruction_level_from(level)) {
    if (*asked > cpu::detected_instruction_level())
      std::fprintf(stderr, "notice: the run computed with %s, which this processor lacks: bits may differ\n",
                   level.c_str());
    cpu::limit_instruction_set(*asked);
  }
  Json json;
  run_ranks_as_threads(
      1, 0, [&](Communicator& communicator) { json = run_again(request, std::move(config), start, communicator); });
  json["record"] = start.record.is_null() ? Json(nullptr) : differences(json, start.record);
  if (!start.config_is_known && !start.record.is_null() && !json["record"].empty() && request.sets.empty()) {
    throw UserError(
        "step " + std::to_string(request.step) + " of " + request.run +
        " cannot be replayed: no file tells any more by which config it ran (the run was resumed since, and "
        "its checkpoints from before are gone), and by the nearest one that is known it comes out otherwise; " +
        start.else_possible);
  }
  if (request.json) {
    std::puts(json_text(json, 2).c_str());
  } else {
    print(json);
  }
  return !json["record"].is_null() && !json["record"].empty() ? 1 : 0;
}

}  // namespace zt
