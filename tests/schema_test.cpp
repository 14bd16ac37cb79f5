// The JSON Schema says of a config what the program says of it, as far as one key goes. Evaluated here by the words of
// JSON Schema that the schema uses; a word that is not among them fails the test.
#include "config/schema.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "catch_compat.h"
#include "config/keys.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  REQUIRE(type == "integer");
  return value.is_number() && value.get<double>() == std::floor(value.get<double>());
}

bool equal(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() ? a.get<double>() == b.get<double>() : a == b;
}

bool accepts(const Json& schema, const Json& value);

bool holds(const std::string& word, const Json& rule, const Json& schema, const Json& value) {
  const auto any = [&](const Json& list, const auto& test) { return std::any_of(list.begin(), list.end(), test); };
  if (word == "type") {
    const Json types = rule.is_array() ? rule : Json::array({rule});
    return any(types, [&](const Json& type) { return has_type(value, type.get<std::string>()); });
  }
  if (word == "enum") return any(rule, [&](const Json& allowed) { return equal(allowed, value); });
  if (word == "const") return equal(rule, value);
  if (word == "anyOf") return any(rule, [&](const Json& form) { return accepts(form, value); });
  if (word == "allOf") return !any(rule, [&](const Json& part) { return !accepts(part, value); });
  if (word == "not") return !accepts(rule, value);
  if (word == "if") return !accepts(rule, value) || accepts(schema.at("then"), value);
  if (value.is_number()) {
    const double number = value.get<double>();
    if (word == "minimum") return number >= rule.get<double>();
    if (word == "maximum") return number <= rule.get<double>();
    if (word == "exclusiveMinimum") return number > rule.get<double>();
    if (word == "exclusiveMaximum") return number < rule.get<double>();
  }
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (word == "minLength") return text.size() >= rule.get<std::size_t>();
    if (word == "pattern") return std::regex_search(text, std::regex(rule.get<std::string>()));
  }
  if (value.is_array()) {
    if (word == "minItems") return value.size() >= rule.get<std::size_t>();
    if (word == "maxItems") return value.size() <= rule.get<std::size_t>();
    if (word == "items") return !any(value, [&](const Json& item) { return !accepts(rule, item); });
  }
  if (!value.is_object()) return true;
  if (word == "maxProperties") return value.size() <= rule.get<std::size_t>();
  if (word == "required") return !any(rule, [&](const Json& name) { return !value.contains(name.get<std::string>()); });
  if (word != "properties") return true;
  return std::all_of(value.items().begin(), value.items().end(), [&](const auto& entry) {
    return !rule.contains(entry.key()) || accepts(rule.at(entry.key()), entry.value());
  });
}

// Of the names that `properties` does not list.
bool other_names_pass(const Json& schema, const Json& value) {
  const Json patterns = schema.value("patternProperties", Json::object());
  const Json listed = schema.value("properties", Json::object());
  for (const auto& [name, inner] : value.items()) {
    if (listed.contains(name)) continue;
    bool matched = false;
    for (const auto& [pattern, rule] : patterns.items()) {
      if (!std::regex_search(name, std::regex(pattern))) continue;
      matched = true;
      if (!accepts(rule, inner)) return false;
    }
    if (!matched && schema.contains("additionalProperties") && !accepts(schema["additionalProperties"], inner))
      return false;
  }
  return true;
}

bool accepts(const Json& schema, const Json& value) {
  static const std::set<std::string> known = {"$schema",
                                              "title",
                                              "description",
                                              "default",
                                              "deprecated",
                                              "type",
                                              "enum",
                                              "const",
                                              "anyOf",
                                              "allOf",
                                              "not",
                                              "if",
                                              "then",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "minLength",
                                              "pattern",
                                              "minItems",
                                              "maxItems",
                                              "items",
                                              "maxProperties",
                                              "required",
                                              "properties",
                                              "patternProperties",
                                              "additionalProperties"};
  if (schema.is_boolean()) return schema.get<bool>();
  for (const auto& [word, rule] : schema.items()) {
    INFO(word);
    REQUIRE(known.contains(word));
    if (!holds(word, rule, schema, value)) return false;
  }
  return !value.is_object() || other_names_pass(schema, value);
}

bool accepts_text(const std::string& text) {
  static const Json schema = config_schema();
  return accepts(schema, Json::parse(blank_comments(text, "test")));
}

}  // namespace

TEST_CASE("the schema accepts the configs of this project and what the program prints") {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ZEROTRAIN_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".json") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    INFO(entry.path());
    CHECK(accepts_text(text.str()));
  }
  for (const char* base : {tiny_gpt(), tiny_mlp()}) {
    const Json printed = resolve_texts({base, R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1,
        "cycle_max_lr": 0.2}}, "zero_optimization": {"stage": 3}})"})
                             .json;
    INFO(printed.dump(1));
    CHECK(accepts_text(printed.dump()));
  }
}

TEST_CASE("the schema and the program agree about a key") {
  struct Part {
    const char* text;
    bool good;
  };
  for (const Part& part : std::vector<Part>{
           {R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})", true},
           {R"({"train_batch_size": "auto", "_comment": "x", "$schema": "y"})", true},
           {R"({"steps_per_print": 5e8})", true},
           {R"({"steps_per_print": 0})", false},
           {R"({"steps_per_print": 1.5})", false},
           {R"({"steps_per_print": "auto"})", false},
           {R"({"zero_optimization": {"stage": 4}})", false},
           {R"({"zero_optimization": true})", true},
           {R"({"zero_optimization": {"stge": 1}})", false},
           {R"({"zero_optimization": {"cpu_offload": true, "overlap_comm": "auto"}})", true},
           {R"({"zero_optimization": {"max_live_parameters": 1e9}})", true},
           {R"({"zero_optimization": {"max_live_parameters": -1}})", false},
           {R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})", false},
           {R"({"zero_optimization": {"zero_quantized_weights": true}})", false},
           {R"({"zero_optimization": {"zero_quantized_weights": false}})", true},
           {R"({"optimizer": {"type": "adamw", "params": {"lr": "auto", "betas": [0.9, 0.95]}}})", true},
           {R"({"optimizer": {"type": "AdamW", "params": {"betas": [0.9]}}})", false},
           {R"({"optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1]}}})", false},
           {R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})", false},
           {R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9}}})", true},
           {R"({"optimizer": {"type": "OneBitAdam"}})", false},
           {R"({"optimizer": null, "scheduler": null})", true},
           {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}}})", true},
           {R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 5}}})", false},
           {R"({"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_max_lr": 5}}})", false},
           {R"({"model": {"n_layer": 3}})", true},
           {R"({"model": {"type": "mlp", "n_layer": 3}})", false},
           {R"({"model": {"type": "mlp", "layers": [3]}})", false},
           {R"({"model": {"type": "rnn"}})", false},
           {R"({"model": {"type": "gpt", "n_inner": null, "vocab_size": "auto", "freeze": ["wte"]}})", true},
           {R"({"data": {"type": "csv", "path": "x", "target": "y"}})", true},
           {R"({"data": {"type": "csv", "path": "x", "target": [0]}})", false},
           {R"({"data": {"type": "csv", "path": "", "target": 1}})", false},
           {R"({"fp16": {"enabled": true, "loss_scale": "dynamic"}})", false},
           {R"({"amp": {"enabled": true, "loss_scale": "dynamic", "opt_level": "O2"}})", true},
           {R"({"amp": {"loss_scale": 0}})", false},
           {R"({"bfloat16": {"enabled": true}})", true},
           {R"({"pipeline": {"stages": 2}})", false},
           {R"({"curriculum_learning": {"enabled": false, "any": 1}})", true},
           {R"({"curriculum_learning": {"enabled": true}})", false},
           {R"({"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": false}}}})", true},
           {R"({"tensor_parallel": {"autotp_size": 1}})", true},
           {R"({"tensor_parallel": {"autotp_size": 4}})", false},
           {R"({"wandb": {"enabled": true, "project": "x"}})", true},
           {R"({"gradient_cliping": 1.0})", false},
       }) {
    INFO(part.text);
    CHECK(accepts_text(part.text) == part.good);
    // Over the model that it fits; what it leaves out is there already.
    const std::string text = part.text;
    const bool for_mlp = text.find("mlp") != std::string::npos || text.find("csv") != std::string::npos;
    INFO(refusal_of({for_mlp ? tiny_mlp() : tiny_gpt(), part.text}));
    CHECK((refusal_of({for_mlp ? tiny_mlp() : tiny_gpt(), part.text}) == "accepted") == part.good);
  }
}

TEST_CASE("every key of the table is in the schema with its help and its default") {
  const std::string text = config_schema().dump();
  for (const Key& key : key_table()) {
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    INFO(key.path);
    CHECK(text.find(Json(name).dump() + ":{") != std::string::npos);
    const std::string help = Json(key.help).dump();
    CHECK(text.find(help.substr(1, help.size() - 2)) != std::string::npos);
    if (key.fallback && key.kind == KeyKind::used) {
      CHECK(text.find("\"default\":" + key.fallback->dump()) != std::string::npos);
    }
  }
}
