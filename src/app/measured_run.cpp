#include "app/measured_run.h"

#include <filesystem>
#include <fstream>

#include "core/errors.h"
#include "core/json.h"

namespace zt {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Summary {
 public:
  explicit Summary(std::string path) : path_(std::move(path)) {
    if (!fs::is_regular_file(path_)) {
      throw UserError("--from " + path_ +
                      ": there is no such summary: name the directory of a run that has ended, or " +
                      "its summary.json");
    }
    constexpr std::uintmax_t most = 64 << 20;
    if (fs::file_size(path_) > most) throw UserError("--from " + path_ + ": that is too large for a summary.json");
    std::ifstream file(path_, std::ios::binary);
    json_ = Json::parse(file, nullptr, false);
    if (!json_.is_object()) throw UserError("--from " + path_ + ": that is no JSON object");
  }

  const Json& at(const char* section, const char* key) const {
    const auto outer = json_.find(section);
    if (outer == json_.end() || !outer->is_object() || !outer->contains(key))
      throw UserError("--from " + path_ + ": " + section + "." + key + " is missing: it is not the summary of a run");
    return outer->at(key);
  }
  double number(const char* section, const char* key) const {
    const Json& value = at(section, key);
    if (!value.is_number() || value.get<double>() < 0.0)
      throw UserError("--from " + path_ + ": " + section + "." + key + " is no number of a measurement");
    return value.get<double>();
  }
  // Seconds inside a kind of collective.
  double seconds_inside(const char* kind) const {
    const Json& value = at("communication", kind);
    if (!value.is_object() || !value.contains("seconds") || !value.at("seconds").is_number())
      throw UserError("--from " + path_ + ": communication." + kind + ".seconds is missing");
    return value.at("seconds").get<double>();
  }
  bool has(const char* section, const char* key) const { return json_.at(section).contains(key); }

 private:
  std::string path_;
  Json json_;
};

}  // namespace

MeasuredSource read_measured(const std::string& path) {
  const std::string file = fs::is_directory(path) ? path + "/summary.json" : path;
  const Summary summary(file);
  MeasuredSource measured;
  measured.summary = file;
  const std::string config = (fs::path(file).parent_path() / "config.resolved.json").string();
  if (!fs::is_regular_file(config))
    throw UserError("--from " + file + ": the run's config.resolved.json is not beside it");
  measured.config.configs = {config};
  const double ranks = summary.number("run", "world_size");
  if (ranks < 1.0 || ranks > (1 << 20)) throw UserError("--from " + file + ": run.world_size is no number of ranks");
  measured.ranks = static_cast<int>(ranks);

  MeasuredRun& run = measured.run;
  const double samples = summary.number("run", "micro_batch") * summary.number("run", "accumulation") * ranks;
  double per_second = 0.0;
  double positions = samples;
  summary.at("throughput", "model_flops_per_second");
  if (summary.has("throughput", "tokens_per_second")) {
    const ResolvedConfig resolved = resolve_here(measured.config, measured.ranks);
    positions *= static_cast<double>(resolved.settings.model.gpt.n_positions);
    per_second = summary.number("throughput", "tokens_per_second");
  } else {
    per_second = summary.number("throughput", "samples_per_second");
  }
  run.step_seconds = per_second > 0.0 ? positions / per_second : 0.0;
  run.forward = summary.number("seconds", "forward");
  run.backward = summary.number("seconds", "backward");
  run.optimizer = summary.number("seconds", "optimizer");
  run.data_wait = summary.number("seconds", "data_wait");
  if (!summary.at("seconds", "communication_exposed").is_null()) {
    run.gather = summary.seconds_inside("all_gather");
    run.reduce = summary.seconds_inside("reduce_scatter");
    // Summaries of older versions know nothing of it.
    if (summary.has("communication", "all_to_all")) run.all_to_all = summary.seconds_inside("all_to_all");
  }
  return measured;
}

}  // namespace zt
