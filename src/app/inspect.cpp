#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>

#include "app/inspect_gradients.h"
#include "app/verbs.h"
#include "checkpoint/checksum.h"
#include "checkpoint/native.h"
#include "checkpoint/tensor_statistics.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "core/number_text.h"
#include "core/shape_text.h"
#include "data/message_text.h"

namespace zt {

namespace {

using Json = nlohmann::ordered_json;

std::string line(const char* format, const char* name, const std::string& value) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), format, name, value.c_str());
  return text.data();
}

std::string digits(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

Json json_of(const TensorStatistics& statistics) {
  return {{"elements", statistics.elements},    {"mean", statistics.mean},       {"deviation", statistics.deviation},
          {"smallest", statistics.smallest},    {"largest", statistics.largest}, {"zeros", statistics.zeros},
          {"not_finite", statistics.not_finite}};
}

void print_head(const NativeCheckpoint& checkpoint, std::int64_t parameters) {
  const Manifest& manifest = checkpoint.manifest();
  const StepCounts& steps = manifest.progress.steps;
  const auto say = [](const char* name, const std::string& value) {
    std::puts(line("%-16s %s", name, shown(value, 400)).c_str());
  };
  say("checkpoint", checkpoint.directory());
  say("written by", manifest.program);
  say("run", std::to_string(manifest.world_size) + (manifest.world_size == 1 ? " rank" : " ranks") + ", stage " +
                 std::to_string(manifest.stage) + ", " + manifest.precision);
  say("steps", std::to_string(steps.attempted) + " attempted, " + std::to_string(steps.applied) + " applied, " +
                   std::to_string(steps.skipped) + " skipped; " + std::to_string(manifest.progress.samples) +
                   " samples");
  if (manifest.loss) say("loss", digits(*manifest.loss));
  if (manifest.validation_loss) say("validation loss", digits(*manifest.validation_loss));
  say("loss scale", digits(manifest.progress.gate.scaler.scale));
  say("parameters", std::to_string(parameters) + " in " + std::to_string(manifest.tensors.size()) + " tensors");
  std::string moments;
  for (const std::string& moment : manifest.moments) moments += (moments.empty() ? "" : ", ") + moment;
  say("optimizer", moments.empty() ? "no moments" : moments);
  if (manifest.tokenizer) say("tokenizer", manifest.tokenizer->name);
  say("weights", "checksum " + checksum_text(manifest.weights_checksum));
  say("files", std::to_string(manifest.files.size()) + ", " + bytes_in_words(manifest.bytes()) + ", all checksums fit");
}

}  // namespace

int inspect(int argc, const char* const* argv) {
  CLI::App app(
      "Says what a checkpoint holds, and checks every checksum: 1 is returned where one does not fit. With "
      "--gradients: "
      "what fp16 leaves of the gradient of a micro-batch.",
      "zerotrain inspect");
  app.footer(
      "Examples:\n"
      "  zerotrain inspect runs/gpt\n"
      "  zerotrain inspect runs/gpt --tensors attn --moments\n"
      "  zerotrain inspect runs/gpt --gradients --scale 65536");
  std::string path;
  std::string pattern;
  bool json = false;
  bool moments = false;
  app.add_option("--checkpoint,checkpoint", path, "A checkpoint, or a run's directory: its newest")->type_name("PATH");
  app.add_option("--tensors", pattern, "Only the tensors whose names have this text in them")->type_name("TEXT");
  app.add_flag("--moments", moments, "The statistics of the optimizer's moments, too");
  GradientRequest request;
  bool shows_gradients = false;
  CLI::Option* const gradients =
      app.add_flag("--gradients", shows_gradients,
                   "In place of this: how large the elements of the next micro-batch's gradient are, counted by power "
                   "of two, in fp32 and in fp16 with loss scale 1; computed on the CPU")
          ->excludes("--moments");
  app.add_option("--scale", request.scales,
                 "With --gradients: in fp16 with this loss scale, too; may be given several times")
      ->type_name("S")
      ->needs(gradients)
      ->take_all()
      ->allow_extra_args(false)
      ->check(finite_number(1e-30, 1e30));
  app.add_option("-s,--set", request.sets,
                 "With --gradients: one key laid over the checkpoint's config: a.b.c=VALUE, as data.path=other.txt")
      ->type_name("KEY=VALUE")
      ->needs(gradients)
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--json", json, "One JSON object in place of the lines");
  if (!parse_verb(app, argc, argv)) return 0;

  if (path.empty()) throw UserError("no checkpoint: name one, or a run's directory, as zerotrain inspect runs/gpt");
  const NativeCheckpoint checkpoint(find_checkpoint(path));
  checkpoint.verify();
  checkpoint.verify_weights_checksum();
  if (shows_gradients) {
    request.pattern = pattern;
    request.json = json;
    inspect_gradients(checkpoint, request);
    return 0;
  }
  const Manifest& manifest = checkpoint.manifest();
  std::int64_t parameters = 0;
  for (const CheckpointTensor& tensor : manifest.tensors) parameters += tensor.count();
  Json out;
  if (json) {
    out = {{"checkpoint", checkpoint.directory()},
           {"program", manifest.program},
           {"step", manifest.step},
           {"world_size", manifest.world_size},
           {"stage", manifest.stage},
           {"precision", manifest.precision},
           {"parameters", parameters},
           {"bytes", manifest.bytes()},
           {"weights_checksum", checksum_text(manifest.weights_checksum)},
           {"moments", manifest.moments},
           {"tensors", Json::array()}};
  } else {
    print_head(checkpoint, parameters);
    std::printf("\n%-44s %-16s %11s %11s %11s %11s %11s %s\n", "tensor", "shape", "mean", "deviation", "smallest",
                "largest", "zeros", "not finite");
  }
  const std::vector<std::string> kinds = moments ? manifest.kinds() : std::vector<std::string>{weights_kind};
  for (std::size_t index = 0; index < manifest.tensors.size(); ++index) {
    const CheckpointTensor& tensor = manifest.tensors[index];
    if (tensor.name.find(pattern) == std::string::npos) continue;
    Json entry = {{"name", tensor.name}, {"shape", tensor.shape}, {"trained", tensor.trained}};
    for (const std::string& kind : kinds) {
      if (!checkpoint.has(kind, static_cast<int>(index))) continue;
      const TensorStatistics statistics = statistics_of(checkpoint, kind, static_cast<int>(index));
      if (json) {
        entry[kind] = json_of(statistics);
        continue;
      }
      const std::string name = kind == weights_kind ? shown(tensor.name, 200) : "  " + kind;
      std::printf("%-44s %-16s %11.4g %11.4g %11.4g %11.4g %11lld %lld\n", name.c_str(),
                  shape_text(tensor.shape).c_str(), statistics.mean, statistics.deviation, statistics.smallest,
                  statistics.largest, static_cast<long long>(statistics.zeros),
                  static_cast<long long>(statistics.not_finite));
    }
    if (json) out["tensors"].push_back(std::move(entry));
  }
  if (json) std::puts(json_text(out, 2).c_str());
  return 0;
}

}  // namespace zt
