#include "checkpoint/manifest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "checkpoint/checksum.h"
#include "checkpoint/json_fields.h"
#include "core/errors.h"
#include "core/json_bounds.h"
#include "data/message_text.h"

namespace zt {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* format_name = "zerotrain checkpoint";
constexpr std::int64_t version = 1;
constexpr std::int64_t most_elements = std::int64_t{1} << 50;
constexpr std::int64_t most_count = std::numeric_limits<std::int64_t>::max() / 4;
constexpr int most_ranks = 1 << 20;
constexpr std::size_t most_moments = 16;

DType dtype_named(const JsonFields& fields, const char* key) {
  const std::string name = fields.text(key);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (name == name_of(dtype)) return dtype;
  }
  fields.fail(key, "must be fp32, bf16 or fp16, not \"" + shown(name) + "\"");
}

// A name that stays in the checkpoint's directory.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string file_name(const JsonFields& fields, const char* key) {
  std::string name = fields.text(key);
  if (!is_plain_name(name) || name == manifest_name) fields.fail(key, "must be the name of a file beside the manifest");
  return name;
}

// ---- Progress

Json json_of(const TrainingProgress& progress) {
  const StepCounts& steps = progress.steps;
  Json skipped_for = Json::object();
  for (std::size_t reason = 1; reason < skip_reason_count; ++reason)
    skipped_for[name_of(static_cast<SkipReason>(reason))] = steps.skipped_for.at(reason);
  const UpdateGateState& gate = progress.gate;
  return {{"steps",
           {{"attempted", steps.attempted},
            {"applied", steps.applied},
            {"skipped", steps.skipped},
            {"retried", steps.retried},
            {"skipped_for", skipped_for}}},
          {"samples", progress.samples},
          {"loss_scaler",
           {{"scale", gate.scaler.scale},
            {"clean_steps", gate.scaler.clean_steps},
            {"hysteresis", gate.scaler.hysteresis}}},
          {"spike_guard", {{"losses", gate.spikes.losses}, {"grad_norms", gate.spikes.grad_norms}}},
          {"losses_in_a_row", gate.losses_in_a_row},
          {"skips_in_a_row", gate.skips_in_a_row}};
}

TrainingProgress progress_of(const JsonFields& fields) {
  TrainingProgress progress;
  StepCounts& steps = progress.steps;
  const JsonFields counts = fields.object("steps");
  steps.attempted = counts.integer("attempted", 0, most_count);
  steps.applied = counts.integer("applied", 0, steps.attempted);
  steps.skipped = counts.integer("skipped", 0, steps.attempted);
  if (steps.applied + steps.skipped != steps.attempted) counts.fail("attempted", "is not applied + skipped");
  steps.retried = counts.integer("retried", 0, most_count);
  const JsonFields reasons = counts.object("skipped_for");
  for (std::size_t reason = 1; reason < skip_reason_count; ++reason)
    steps.skipped_for.at(reason) = reasons.integer(name_of(static_cast<SkipReason>(reason)), 0, steps.skipped);
  progress.samples = fields.integer("samples", 0, most_count);
  const JsonFields scaler = fields.object("loss_scaler");
  progress.gate.scaler = {scaler.number("scale"), scaler.integer("clean_steps", 0, most_count),
                          scaler.integer("hysteresis", 0, most_count)};
  if (!(progress.gate.scaler.scale > 0.0)) scaler.fail("scale", "must be above 0");
  const JsonFields spikes = fields.object("spike_guard");
  progress.gate.spikes = {spikes.numbers("losses"), spikes.numbers("grad_norms")};
  if (progress.gate.spikes.losses.size() != progress.gate.spikes.grad_norms.size())
    spikes.fail("losses", "and grad_norms differ in length");
  progress.gate.losses_in_a_row = fields.integer("losses_in_a_row", 0, most_count);
  progress.gate.skips_in_a_row = fields.integer("skips_in_a_row", 0, most_count);
  return progress;
}

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const EarlyStoppingState& state) {
  Json best = nullptr;
  if (state.best) best = {{"step", state.best->step}, {"validation_loss", state.best->validation_loss}};
  return {{"best", best}, {"reference", json_of(state.reference)}, {"without_improvement", state.without_improvement}};
}

EarlyStoppingState early_stopping_of(const JsonFields& fields) {
  EarlyStoppingState state;
  if (!fields.is_null("best")) {
    const JsonFields best = fields.object("best");
    state.best = BestEvaluation{best.integer("step", 0, most_count), best.number("validation_loss")};
  }
  state.reference = fields.number_or_null("reference");
  state.without_improvement = fields.integer("without_improvement", 0, most_count);
  return state;
}

// ---- Files

Json json_of(const std::vector<CheckpointFile>& files) {
  Json list = Json::array();
  for (const CheckpointFile& file : files) {
    Json pieces = Json::array();
    for (const CheckpointPiece& piece : file.pieces) {
      pieces.push_back({{"tensor", piece.tensor},
                        {"offset", piece.offset},
                        {"count", piece.count},
                        {"dtype", name_of(piece.dtype)},
                        {"checksum", checksum_text(piece.checksum)}});
    }
    list.push_back({{"name", file.name},
                    {"kind", file.kind},
                    {"bytes", file.bytes},
                    {"checksum", checksum_text(file.checksum)},
                    {"pieces", std::move(pieces)}});
  }
  return list;
}

std::vector<CheckpointFile> files_of(const JsonFields& fields) {
  std::vector<CheckpointFile> files;
  for (const JsonFields& entry : fields.objects("files")) {
    CheckpointFile file;
    file.name = file_name(entry, "name");
    file.kind = entry.text("kind");
    file.bytes = entry.integer("bytes", 0, most_count);
    file.checksum = entry.checksum("checksum");
    for (const JsonFields& part : entry.objects("pieces")) {
      CheckpointPiece piece;
      piece.tensor = static_cast<int>(part.integer("tensor", 0, std::numeric_limits<int>::max()));
      piece.offset = part.integer("offset", 0, most_elements);
      piece.count = part.integer("count", 1, most_elements);
      piece.dtype = dtype_named(part, "dtype");
      piece.checksum = part.checksum("checksum");
      file.pieces.push_back(piece);
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<CheckpointTensor> tensors_of(const JsonFields& fields) {
  std::vector<CheckpointTensor> tensors;
  std::set<std::string> names;
  for (const JsonFields& entry : fields.objects("tensors")) {
    CheckpointTensor tensor;
    tensor.name = entry.text("name");
    if (!names.insert(tensor.name).second) entry.fail("name", "is there twice: " + shown(tensor.name, 120));
    tensor.shape = entry.integers("shape", 1, most_elements);
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.shape) {
      if (extent > most_elements / count) entry.fail("shape", "is beyond any model");
      count *= extent;
    }
    tensor.trained = entry.boolean("trained");
    if (!entry.is_null("moments")) tensor.moments = static_cast<int>(entry.integer("moments", 0, most_moments));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Every element of every kind is in one piece.
void check_coverage(const Manifest& manifest, const JsonFields& fields) {
  const std::vector<std::string> kinds = manifest.kinds();
  std::set<std::string> names;
  std::map<std::string, std::vector<const CheckpointPiece*>> pieces;
  std::int64_t bytes = manifest.tokenizer ? manifest.tokenizer->bytes : 0;
  for (const CheckpointFile& file : manifest.files) {
    if (file.bytes > most_count - bytes) fields.fail("files", "are larger together than any disk");
    bytes += file.bytes;
    if (!names.insert(file.name).second) fields.fail("files", "names " + shown(file.name) + " twice");
    if (std::find(kinds.begin(), kinds.end(), file.kind) == kinds.end())
      fields.fail("files", "has " + shown(file.name) + " of the unknown kind \"" + shown(file.kind) + "\"");
    for (const CheckpointPiece& piece : file.pieces) {
      if (static_cast<std::size_t>(piece.tensor) >= manifest.tensors.size())
        fields.fail("files", "has a piece of tensor " + std::to_string(piece.tensor) + ", which is not in tensors");
      pieces[file.kind].push_back(&piece);
    }
  }
  if (manifest.tokenizer && !names.insert(manifest.tokenizer->file).second)
    fields.fail("tokenizer", "names a file of tensors");
  for (const std::string& kind : kinds) {
    std::vector<const CheckpointPiece*>& of_kind = pieces[kind];
    std::sort(of_kind.begin(), of_kind.end(), [](const CheckpointPiece* a, const CheckpointPiece* b) {
      return std::pair(a->tensor, a->offset) < std::pair(b->tensor, b->offset);
    });
    auto next = of_kind.begin();
    for (std::size_t index = 0; index < manifest.tensors.size(); ++index) {
      const CheckpointTensor& tensor = manifest.tensors[index];
      std::int64_t covered = 0;
      while (next != of_kind.end() && (*next)->tensor == static_cast<int>(index)) {
        if ((*next)->offset != covered || (*next)->count > tensor.count() - covered) {
          fields.fail("files", "has pieces of " + shown(tensor.name, 120) + " (" + shown(kind) +
                                   ") that overlap, leave a hole or go past "
                                   "its end at element " +
                                   std::to_string((*next)->offset));
        }
        covered += (*next)->count;
        ++next;
      }
      const bool belongs = manifest.holds(kind, index);
      if (covered != (belongs ? tensor.count() : 0)) {
        fields.fail("files", "has " + std::to_string(covered) + " elements of " + shown(tensor.name, 120) + " (" +
                                 shown(kind) + "), not " + std::to_string(belongs ? tensor.count() : 0));
      }
    }
  }
}

Json parse_json(std::string_view text, const std::string& path) {
  if (const std::string beyond = beyond_json_bounds(text, JsonBounds{.deepest = 80}); !beyond.empty())
    throw RunError(path + ": it " + beyond + ", as no checkpoint's is");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw RunError(path + ": it is not JSON");
  return json;
}

// ---- The checksum at the end

const std::string checksum_start = ",\n  \"checksum\": \"";
const std::string checksum_end = "\"\n}\n";

}  // namespace

std::int64_t CheckpointTensor::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

const CheckpointFile* Manifest::find(std::string_view file) const {
  for (const CheckpointFile& candidate : files) {
    if (candidate.name == file) return &candidate;
  }
  return nullptr;
}

int Manifest::tensor_index(std::string_view name) const {
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    if (tensors[index].name == name) return static_cast<int>(index);
  }
  return -1;
}

std::vector<std::string> Manifest::kinds() const {
  std::vector<std::string> kinds = {weights_kind};
  kinds.insert(kinds.end(), moments.begin(), moments.end());
  return kinds;
}

bool Manifest::holds(std::string_view kind, std::size_t tensor) const {
  if (kind == weights_kind) return true;
  const auto moment = std::find(moments.begin(), moments.end(), kind) - moments.begin();
  const CheckpointTensor& of = tensors.at(tensor);
  const auto kept = static_cast<std::ptrdiff_t>(moments.size());
  return of.trained &&
         moment < std::min(kept, static_cast<std::ptrdiff_t>(of.moments.value_or(static_cast<int>(kept))));
}

std::int64_t Manifest::bytes() const {
  std::int64_t sum = tokenizer ? tokenizer->bytes : 0;
  for (const CheckpointFile& file : files) sum += file.bytes;
  return sum;
}

std::string manifest_text(const Manifest& manifest) {
  Json json;
  json["format"] = format_name;
  json["version"] = version;
  json["program"] = manifest.program;
  json["step"] = manifest.step;
  json["world_size"] = manifest.world_size;
  json["stage"] = manifest.stage;
  json["precision"] = manifest.precision;
  json["progress"] = json_of(manifest.progress);
  json["early_stopping"] = json_of(manifest.early_stopping);
  json["loss"] = json_of(manifest.loss);
  json["validation_loss"] = json_of(manifest.validation_loss);
  json["evaluated"] = manifest.evaluated ? Json(*manifest.evaluated) : Json(nullptr);
  json["weights_checksum"] = checksum_text(manifest.weights_checksum);
  json["data_samples"] = manifest.data_samples;
  json["moments"] = manifest.moments;
  Json tensors = Json::array();
  for (const CheckpointTensor& tensor : manifest.tensors) {
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"trained", tensor.trained}});
    if (tensor.moments) tensors.back()["moments"] = *tensor.moments;
  }
  json["tensors"] = std::move(tensors);
  json["tokenizer"] = nullptr;
  if (manifest.tokenizer) {
    json["tokenizer"] = {{"name", manifest.tokenizer->name},
                         {"file", manifest.tokenizer->file},
                         {"bytes", manifest.tokenizer->bytes},
                         {"checksum", checksum_text(manifest.tokenizer->checksum)}};
  }
  json["config"] = manifest.config;
  json["files"] = json_of(manifest.files);
  std::string text = json.dump(1);
  text.erase(text.rfind("\n}"));
  const std::string sum = checksum_text(checksum_of(text));
  return text + checksum_start + sum + checksum_end;
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const std::size_t start = text.rfind(checksum_start);
  const std::size_t digits = start + checksum_start.size();
  if (start == std::string_view::npos || text.size() != digits + 16 + checksum_end.size() ||
      text.substr(digits + 16) != checksum_end) {
    throw RunError(path + ": it does not end in its checksum: it is cut short, or was changed after it was written");
  }
  const auto expected = parse_checksum(text.substr(digits, 16));
  if (!expected || *expected != checksum_of(text.substr(0, start)))
    throw RunError(path + ": its checksum does not fit its text: it is damaged");
  const Json json = parse_json(text, path);
  const JsonFields fields(json, path, "");
  if (fields.text("format") != format_name) fields.fail("format", std::string("must be \"") + format_name + "\"");
  if (fields.integer("version", 1, most_count) > version) {
    fields.fail("version", "is " + std::to_string(json["version"].get<std::int64_t>()) +
                               ", and this program reads up to " + std::to_string(version) +
                               ": it was written by a newer zerotrain (" + shown(fields.text("program")) +
                               "); use that one");
  }
  Manifest manifest;
  manifest.program = fields.text("program");
  manifest.step = fields.integer("step", 0, most_count);
  manifest.world_size = static_cast<int>(fields.integer("world_size", 1, most_ranks));
  manifest.stage = static_cast<int>(fields.integer("stage", 0, 3));
  manifest.precision = fields.text("precision");
  manifest.progress = progress_of(fields.object("progress"));
  if (manifest.progress.steps.attempted != manifest.step) fields.fail("step", "is not progress.steps.attempted");
  manifest.early_stopping = early_stopping_of(fields.object("early_stopping"));
  manifest.loss = fields.number_or_null("loss");
  manifest.validation_loss = fields.number_or_null("validation_loss");
  if (!fields.is_null("evaluated")) manifest.evaluated = fields.integer("evaluated", 0, manifest.step);
  manifest.weights_checksum = fields.checksum("weights_checksum");
  manifest.data_samples = fields.integer("data_samples", 0, most_count);
  manifest.moments = fields.texts("moments");
  if (manifest.moments.size() > most_moments) fields.fail("moments", "are more than any optimizer has");
  for (const std::string& moment : manifest.moments) {
    if (!is_plain_name(moment) || moment == weights_kind ||
        std::count(manifest.moments.begin(), manifest.moments.end(), moment) != 1)
      fields.fail("moments", "are no names of moments");
  }
  manifest.tensors = tensors_of(fields);
  if (!fields.is_null("tokenizer")) {
    const JsonFields tokenizer = fields.object("tokenizer");
    manifest.tokenizer = {tokenizer.text("name"), file_name(tokenizer, "file"),
                          tokenizer.integer("bytes", 0, most_count), tokenizer.checksum("checksum")};
  }
  manifest.config = fields.value("config");
  if (!manifest.config.is_object()) fields.fail("config", "must be an object");
  manifest.files = files_of(fields);
  check_coverage(manifest, fields);
  return manifest;
}

std::string files_text(const std::vector<CheckpointFile>& files) {
  Json json;
  json["files"] = json_of(files);
  return json.dump() + "\n";
}

std::vector<CheckpointFile> parse_files(std::string_view text, const std::string& path) {
  const Json json = parse_json(text, path);
  return files_of(JsonFields(json, path, ""));
}

}  // namespace zt
