// inspect, compare and replay from the outside.
#include <map>

#include "checkpoint/directory.h"
#include "core/json.h"
#include "program_support.h"

using namespace zt::test;

namespace {

const Arguments every_second = {"--set", "training.checkpoint_interval=2", "--set", "training.max_steps=6",
                                "--set", "training.digest_interval=1"};

ProgramResult verb(const Workplace& place, const Arguments& arguments) { return place.run_with(arguments); }

Json json_from(const ProgramResult& result) {
  INFO(result.err);
  INFO(result.out);
  const Json json = Json::parse(result.out, nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  return json;
}

void run_as(const Workplace& place, const std::string& name, const Arguments& more) {
  check_completes(place.run_with(Arguments{"--config", "config.json", "--output", name} + every_second + more));
}

}  // namespace

TEST_CASE("inspect tells what is in a checkpoint, and refuses a damaged one") {
  const Workplace place;
  run_as(place, "run", ranks(2) + stage(2));
  const ProgramResult text = verb(place, {"inspect", "run"});
  CHECK(text.code == 0);
  CHECK(text.out.find("2 ranks, stage 2, fp32") != std::string::npos);
  CHECK(text.out.find("all checksums fit") != std::string::npos);
  const Json json = json_from(verb(place, {"inspect", "--checkpoint", "run", "--moments", "--json"}));
  CHECK(json.at("step") == 6);
  CHECK(json.at("weights_checksum") == json_of(place.file("run/summary.json")).at("weights_checksum"));
  std::int64_t elements = 0;
  for (const Json& tensor : json.at("tensors")) {
    elements += tensor.at("weights").at("elements").get<std::int64_t>();
    CHECK(tensor.at("weights").at("not_finite") == 0);
    CHECK(tensor.at("exp_avg_sq").at("smallest") >= 0.0);
    if (tensor.at("name") == "h.0.ln_1.weight")
      CHECK(std::abs(tensor.at("weights").at("mean").get<double>() - 1.0) < 0.1);
  }
  CHECK(elements == json.at("parameters"));
  CHECK(json_from(verb(place, {"inspect", "run", "--tensors", "h.1.", "--json"})).at("tensors").size() == 12);

  fs::resize_file(place.file("run/checkpoints/step-00000006/rank-00001.weights.safetensors"), 100);
  check_fails(verb(place, {"inspect", "run"}), 1, "rank-00001.weights.safetensors has 100 bytes");
  CHECK(verb(place, {"inspect", "run/checkpoints/step-00000004"}).code == 0);
  check_fails(verb(place, {"inspect", "missing"}), 2, "missing is not there");
  check_fails(verb(place, {"inspect"}), 2, "no checkpoint: name one");
}

namespace {

// Elements by exponent of what replay says the gradient of a step is, times a scale.
std::map<std::string, std::int64_t> exponents_of_replayed(const Workplace& place, const Arguments& more, double scale) {
  const Json json = json_from(verb(
      place,
      Arguments{"replay", "run", "--step", "5", "--tensor", "layers.0.weight", "--count", "1000", "--json"} + more));
  std::map<std::string, std::int64_t> counts;
  for (const Json& value : json.at("values").at("gradient")) {
    if (value.get<double>() != 0.0) ++counts[std::to_string(std::ilogb(scale * value.get<double>()))];
  }
  return counts;
}

}  // namespace

TEST_CASE("inspect --gradients counts the gradient of the next micro-batch as training computes it") {
  const Workplace place(tiny_mlp);
  run_as(place, "run", {});
  const Arguments gradients = {"inspect", "run/checkpoints/step-00000004", "--gradients", "--scale", "1024"};
  const Arguments of_tensor = gradients + Arguments{"--tensors", "layers.0.weight", "--json"};
  const Json json = json_from(verb(place, of_tensor));
  CHECK(json.at("elements") == 72);
  CHECK(json.at("first_sample") == 17);
  CHECK(json.at("samples") == 4);
  REQUIRE(json.at("columns").size() == 3);
  const Arguments in_fp16 = {"--set", "fp16.enabled=true", "--set", "data_types.grad_accum_dtype=fp16"};
  const std::vector<std::map<std::string, std::int64_t>> expected = {
      exponents_of_replayed(place, {}, 1.0),
      exponents_of_replayed(place, in_fp16 + Arguments{"--set", "fp16.loss_scale=1"}, 1.0),
      exponents_of_replayed(place, in_fp16 + Arguments{"--set", "fp16.loss_scale=1024"}, 1024.0)};
  const std::vector<std::string> precisions = {"fp32", "fp16", "fp16"};
  for (std::size_t index = 0; index < 3; ++index) {
    CAPTURE(index);
    const Json& column = json.at("columns").at(index);
    CHECK(column.at("precision") == precisions[index]);
    CHECK(column.at("loss_scale") == (index == 2 ? 1024.0 : 1.0));
    std::int64_t elements = column.at("zeros").get<std::int64_t>();
    std::map<std::string, std::int64_t> counts;
    for (const auto& [exponent, count] : column.at("by_exponent").items()) {
      counts[exponent] = count;
      elements += count.get<std::int64_t>();
    }
    CHECK(elements == 72);
    CHECK(counts == expected[index]);
    CHECK(column.at("normal_in_fp16").get<int>() + column.at("below_normal_in_fp16").get<int>() +
              column.at("zeros").get<int>() ==
          72);
  }
  // A scale that is far too small: nearly all vanish. And one that is far too large.
  const Json extreme =
      json_from(verb(place, {"inspect", "run", "--gradients", "--scale", "1e-7", "--scale", "1e9", "--json"}))
          .at("columns");
  REQUIRE(extreme.size() == 4);
  CHECK(extreme.at(2).at("vanished").get<int>() > 60);
  CHECK(extreme.at(3).at("not_finite").get<int>() > 60);

  const ProgramResult text = verb(place, gradients);
  CHECK(text.code == 0);
  for (const char* words : {"fp16, scale 1024", "2^-14", "-- below: 0 in fp16", "vanished", "samples 17 to 20"})
    CHECK(text.out.find(words) != std::string::npos);
  check_fails(verb(place, {"inspect", "run", "--scale", "2"}), 2, "--gradients");
  check_fails(verb(place, {"inspect", "run", "--gradients", "--tensors", "nothing"}), 2, "no trained tensor");
}

TEST_CASE("inspect --gradients takes the same micro-batch of a run of several ranks in another precision") {
  const Workplace place;
  run_as(place, "run", ranks(2) + stage(3) + Arguments{"--set", "bf16.enabled=true"});
  const Json json = json_from(verb(place, {"inspect", "run", "--gradients", "--json"}));
  CHECK(json.at("samples") == 1);
  CHECK(json.at("first_sample") == 37);
  CHECK(json.at("elements") == json_of(place.file("run/summary.json")).at("model").at("trained"));
}

TEST_CASE("compare follows the branch that a resumed run ended with") {
  const Workplace place;
  run_as(place, "a", {});
  run_as(place, "b", {});
  const std::string whole = contents_of(place.file("b/metrics.jsonl"));
  // As if it had been killed: once more from step 4 on, and to step 5 only. What b has of step 6 is of the old branch.
  fs::remove(place.file("b/summary.json"));
  check_completes(place.run_with({"--config", "config.json", "--output", "b", "--resume", "b/checkpoints/step-00000004",
                                  "--set", "training.max_steps=5"}));
  CHECK(contents_of(place.file("b/metrics.jsonl")).starts_with(whole));
  const ProgramResult same = verb(place, {"compare", "a", "b"});
  INFO(same.out);
  CHECK(same.out.find("5 common steps, all the same") != std::string::npos);
  CHECK(json_from(verb(place, {"compare", "a", "b", "--json"})).at("common_steps") == 5);
}

TEST_CASE("compare finds the first step and the first tensor that differ") {
  const Workplace place;
  run_as(place, "a", {});
  run_as(place, "b", ranks(3) + stage(3));
  run_as(place, "c", {"--set", "training.max_steps=3", "--set", "training.checkpoint_interval=2"});
  const ProgramResult same = verb(place, {"compare", "a", "b"});
  CHECK(same.code == 0);
  CHECK(same.out.find("6 common steps, all the same") != std::string::npos);
  const Json none_differs = json_from(verb(place, {"compare", "a", "b", "--json"}));
  CHECK(none_differs.at("same") == true);
  CHECK(none_differs.at("first_step").is_null());

  // c goes on with another rate: from step 4 on it is another run.
  check_completes(place.run_with(Arguments{"--config", "config.json", "--output", "c", "--resume"} + every_second +
                                 Arguments{"--set", "optimizer.params.lr=0.003"}));
  const ProgramResult result = verb(place, {"compare", "a", "c", "--json"});
  CHECK(result.code == 1);
  const Json differs = json_from(result);
  CHECK(differs.at("first_step") == 4);
  CHECK(differs.at("key") == "learning_rate");
  CHECK(differs.at("tensor") == "wte.weight");
  CHECK(differs.at("kind") == "weights");
  const ProgramResult checkpoints =
      verb(place, {"compare", "a/checkpoints/step-00000006", "c/checkpoints/step-00000006"});
  CHECK(checkpoints.code == 1);
  CHECK(checkpoints.out.find("the first tensor that differs is wte.weight") != std::string::npos);
}

TEST_CASE("fingerprints in the metrics are the same at every stage and number of ranks") {
  const Workplace place;
  std::string first;
  for (const auto& [number, zero] : std::vector<std::pair<int, int>>{{1, 0}, {2, 0}, {3, 1}, {2, 2}, {3, 3}}) {
    CAPTURE(number, zero);
    run_as(place, "run", ranks(number) + stage(zero) + Arguments{"--overwrite"});
    std::string digests;
    int count = 0;
    for (const Json& record : metrics_of(place.file("run"))) {
      if (record.at("kind") != "digest") continue;
      digests += record.dump() + "\n";
      ++count;
    }
    CHECK(count == 6);
    if (first.empty()) first = digests;
    CHECK(digests == first);
  }
}

TEST_CASE("replay runs a step of a run of several ranks again, to the bit, in one process") {
  const Workplace place;
  const Arguments scaled = fp16 + Arguments{"--set", "training.checkpoint_interval=2"};
  check_completes(
      place.run_with(Arguments{"--config", "config.json", "--output", "run"} + ranks(3) + stage(3) + scaled));
  const auto records = metrics_of(place.file("run"));
  for (const int step : {1, 2, 3, 6}) {
    CAPTURE(step);
    const ProgramResult result = verb(place, {"replay", "run", "--step", std::to_string(step), "--json"});
    const Json json = json_from(result);
    CHECK(result.code == 0);
    CHECK(json.at("record") == Json::object());
    CHECK(json.at("step") == step);
    // The first steps overflow at this scale.
    CHECK(json.at("not_finite").is_null() == !json.at("skipped").get<bool>());
    if (json.at("skipped").get<bool>())
      CHECK(json.at("not_finite").get<std::string>().find("the first value that is not finite is ") !=
            std::string::npos);
  }
  const Json json = json_from(verb(place, {"replay", "run", "--step", "6", "--tensor", "h.1.mlp.c_fc.weight", "--first",
                                           "3", "--count", "2", "--json"}));
  CHECK(json.at("values").at("weights").size() == 2);
  CHECK(json.at("values").at("gradient").size() == 2);
  CHECK(json.at("values").at("exp_avg").size() == 2);
  const ProgramResult changed = verb(place, {"replay", "run", "--step", "5", "--set", "gradient_clipping=0.5"});
  CHECK(changed.code == 0);  // loss and norm are those before clipping
  const ProgramResult other = verb(place, {"replay", "run", "--step", "6", "--set", "model.resid_pdrop=0"});
  CHECK(other.code == 1);
  CHECK(other.out.find("differs: loss is ") != std::string::npos);
  check_fails(verb(place, {"replay", "run", "--step", "6", "--tensor", "nothing"}), 2, "the model has no nothing");
  check_fails(verb(place, {"replay", "run", "--step", "0"}), 2, "not a whole number from 1 on");
  check_fails(verb(place, {"replay", "missing", "--step", "1"}), 2, "name the directory of a run");
}
