// The pages of docs/ that list names say the same as the program. With ZEROTRAIN_UPDATE_DOCS=1 in the environment the
// tables are written anew (scripts/update_docs.sh).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "comm/threads.h"
#include "config/keys.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "core/precision.h"
#include "data/source.h"
#include "train/trainer.h"
#include "zero/engine.h"

namespace fs = std::filesystem;
using zt::Json;

namespace {

fs::path docs() { return fs::path(ZEROTRAIN_SOURCE_DIR) / "docs"; }

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string section_of(const std::string& path) {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string meaning(const zt::Key& key) {
  std::string text = key.help;
  if (!key.types.empty()) {
    text += " (";
    for (std::size_t i = 0; i < key.types.size(); ++i) text += (i == 0 ? "" : ", ") + code(key.types[i]);
    text += ")";
  }
  if (key.kind == zt::KeyKind::notice) text += ". No effect" + (key.text.empty() ? "" : ": " + key.text);
  if (key.kind == zt::KeyKind::refused) text += ". Refused: " + key.text;
  return text;
}

std::string standard(const zt::Key& key) {
  if (key.needed) return "required";
  return key.fallback ? code(key.fallback->dump()) : "";
}

// What is used first, then what has no effect or is refused, then old names.
std::vector<const zt::Key*> keys_in_order(const std::function<bool(const zt::Key&)>& belongs) {
  std::vector<const zt::Key*> keys;
  for (const zt::Key& key : zt::key_table()) {
    if (belongs(key)) keys.push_back(&key);
  }
  const auto place = [](const zt::Key* key) {
    const bool is_old = key->kind == zt::KeyKind::alias || key->kind == zt::KeyKind::old_form;
    return key->kind == zt::KeyKind::used ? 0 : is_old ? 2 : 1;
  };
  std::stable_sort(keys.begin(), keys.end(), [&](const auto* a, const auto* b) { return place(a) < place(b); });
  return keys;
}

// The keys of the top level, then by section: those that say what a run is, then the others by name.
std::string tables_of_keys() {
  std::vector<std::string> sections = {"model",     "data", "training", "device", "zero_optimization", "optimizer",
                                       "scheduler", "fp16", "bf16",     "amp",    "torch_autocast",    "data_types"};
  std::set<std::string> others;
  for (const zt::Key& key : zt::key_table()) {
    const std::string section =
        key.type == zt::KeyType::section && section_of(key.path).empty() ? key.path : section_of(key.path);
    if (!section.empty() && std::find(sections.begin(), sections.end(), section) == sections.end())
      others.insert(section);
  }
  sections.insert(sections.end(), others.begin(), others.end());

  std::string text;
  const auto table = [&](const std::string& title, const std::function<bool(const zt::Key&)>& belongs) {
    text += "\n## " + title + "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
    for (const zt::Key* key : keys_in_order(belongs)) {
      const bool alias = key->kind == zt::KeyKind::alias;
      text += "| " + code(key->path) + " | " + (alias ? "" : cell(zt::describe_allowed(*key))) + " | " +
              cell(standard(*key)) + " | " + cell(meaning(*key)) + " |\n";
    }
  };
  const auto has_section = [&](const std::string& path) {
    return std::find(sections.begin(), sections.end(), path) != sections.end();
  };
  table("Top level", [&](const zt::Key& key) { return section_of(key.path).empty() && !has_section(key.path); });
  for (const std::string& section : sections) {
    table(section, [&](const zt::Key& key) { return key.path == section || section_of(key.path) == section; });
  }
  return text;
}

void collect_names(const Json& json, std::set<std::string>& names) {
  if (json.is_array()) {
    for (const Json& entry : json) collect_names(entry, names);
  }
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    names.insert(name);
    collect_names(value, names);
  }
}

// Trains one rank for two steps and returns the names in the files that it left.
std::set<std::string> names_in_files_of_a_run(const std::vector<std::string>& sets) {
  const fs::path directory = fs::path(ZEROTRAIN_BINARY_DIR) / "docs_test_run";
  fs::remove_all(directory);
  fs::create_directories(directory);
  std::vector<std::string> all = {"train_batch_size=2", "training.max_steps=2", "training.eval_interval=1",
                                  "training.eval_steps=1", "training.output_dir=" + directory.string()};
  all.insert(all.end(), sets.begin(), sets.end());
  const zt::ResolvedConfig config = zt::resolve_config({}, all, 1);
  const zt::Dataset dataset = zt::open_dataset(config.settings);
  zt::TrainOptions options;
  options.quiet = true;
  options.process_start = std::chrono::steady_clock::now();
  zt::run_ranks_as_threads(
      1, 0, [&](zt::Communicator& communicator) { CHECK(zt::train(config, dataset, communicator, options) == 0); });

  std::set<std::string> names;
  collect_names(Json::parse(contents(directory / "summary.json")), names);
  std::istringstream metrics(contents(directory / "metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) collect_names(Json::parse(line), names);
  return names;
}

}  // namespace

namespace {

bool is_updating() {
  const char* update = std::getenv("ZEROTRAIN_UPDATE_DOCS");
  return update != nullptr && std::string(update) == "1";
}

// The page from `marker` to `end` (or to its own end) is `expected`; with ZEROTRAIN_UPDATE_DOCS=1 it is written so.
void require_generated(const std::string& name, const std::string& marker, const std::string& end,
                       const std::string& expected_part) {
  const fs::path page = docs() / name;
  const std::string text = contents(page);
  const std::size_t at = text.find(marker);
  REQUIRE(at != std::string::npos);
  const std::size_t after = end.empty() ? text.size() : text.find(end, at);
  REQUIRE(after != std::string::npos);
  const std::string expected = text.substr(0, at + marker.size()) + expected_part + text.substr(after);
  if (is_updating()) {
    std::ofstream(page, std::ios::binary) << expected;
    return;
  }
  const auto [old_at, new_at] = std::mismatch(text.begin(), text.end(), expected.begin(), expected.end());
  const auto line = [](const std::string& whole, std::string::const_iterator place) {
    const std::size_t begin = whole.rfind('\n', static_cast<std::size_t>(place - whole.begin()));
    return begin == std::string::npos ? whole : whole.substr(begin + 1, whole.find('\n', begin + 1) - begin - 1);
  };
  INFO("run scripts/update_docs.sh; the first line that differs:\n"
       << line(text, old_at) << "\nshould be\n"
       << line(expected, new_at));
  CHECK((old_at == text.end() && new_at == expected.end()));
}

// What each preset holds and costs, from its formats.
std::string table_of_presets() {
  std::string text =
      "\n| precision | asked for by | parameters (norms) | activations | products | gradients | sums, A = 1, A > 1 | "
      "masters | moments | bytes a parameter with Adam, A = 1, A > 1 | loss scale | ZeRO stages |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  const auto name = [](zt::DType type) { return std::string(zt::name_of(type)); };
  const auto bytes = [](const zt::Precision& precision, int accumulation) {
    std::ostringstream number;
    number << zt::formula_bytes_per_parameter(0, 1, precision, accumulation, 2);
    return number.str();
  };
  for (const zt::PrecisionPreset& preset : zt::precision_presets()) {
    const zt::PrecisionSettings settings{std::string(preset.name), "", ""};
    const zt::Precision one = zt::make_precision(settings, 1);
    const zt::Precision more = zt::make_precision(settings, 2);
    const bool apart = size_of(one.master) > size_of(one.parameter);
    text += "| " + code(settings.preset) + " | " + code(std::string(preset.asked_by)) + " | " + name(one.parameter) +
            (one.vectors == one.parameter ? "" : " (" + name(one.vectors) + ")") + " | " + name(one.activation) +
            " | " + name(one.compute) + " | " + name(one.gradient) + " | " + name(one.accumulator) + ", " +
            name(more.accumulator) + " | " + (apart ? name(one.master) : "the parameters") + " | " + name(one.moment) +
            " | " + bytes(one, 1) + ", " + bytes(more, 2) + " | " + std::string(preset.scaling) + " | 0 to 3 |\n";
  }
  return text + "\n";
}

}  // namespace

TEST_CASE("docs/config.md holds the table of keys") {
  require_generated("config.md", "<!-- Below: written from the table of keys by scripts/update_docs.sh. -->\n", "",
                    tables_of_keys());
}

TEST_CASE("docs/config.schema.json is the schema that the program prints") {
  const fs::path page = docs() / "config.schema.json";
  const std::string expected = zt::config_schema().dump(1) + "\n";
  if (is_updating()) {
    std::ofstream(page, std::ios::binary) << expected;
    return;
  }
  INFO("run scripts/update_docs.sh");
  CHECK((contents(page) == expected));
}

TEST_CASE("docs/precision.md holds the table of presets") {
  require_generated("precision.md", "<!-- Presets: written from their table by scripts/update_docs.sh. -->\n",
                    "<!-- End of presets. -->", table_of_presets());
}

TEST_CASE("docs/outputs.md explains every name in the files of a run") {
  const std::string page = contents(docs() / "outputs.md");
  std::set<std::string> names =
      names_in_files_of_a_run({R"(model={"type": "mlp", "layers": [4, 3], "loss": "cross_entropy"})",
                               R"(data={"type": "synthetic", "task": "regression", "samples": 20})"});
  for (const char* precision :
       {"fp16.enabled=false", R"(fp16={"enabled": true})", R"(fp16={"enabled": true, "on_overflow": "retry"})"}) {
    names.merge(names_in_files_of_a_run(
        {R"(model={"type": "gpt", "n_layer": 1, "n_head": 1, "n_embd": 8, "n_positions": 4, "vocab_size": 5})",
         R"(data={"type": "synthetic", "task": "tokens", "samples": 20})", precision}));
  }
  CHECK(names.size() > 70);
  for (const char* of_skipped_steps : {"skip_reason", "retries", "skipped_for", "best"}) {
    CHECK(names.contains(of_skipped_steps));
  }
  for (const std::string& name : names) {
    INFO("docs/outputs.md does not mention `" << name << "`");
    CHECK((page.find("`" + name + "`") != std::string::npos || page.find("." + name + "`") != std::string::npos));
  }
}
