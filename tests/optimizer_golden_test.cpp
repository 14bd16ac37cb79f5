// Every variant of every optimizer over 50 steps beside PyTorch's, with the betas and rates of DeepSpeed's OneCycle for
// those that are cycled (scripts/golden/make_golden.py).
#include <set>

#include "core/json.h"
#include "golden_training.h"

using namespace zt;
using namespace zt::golden;

namespace {

std::vector<std::string> runs_of(const GoldenFile& file) {
  std::vector<std::string> runs;
  for (const auto& item : file.header().at("runs").items()) runs.push_back(item.key());
  return runs;
}

// The largest relative difference.
double distance_from(const std::vector<double>& exact, const std::vector<double>& values) {
  REQUIRE(values.size() == exact.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(values[i] - exact[i]) / std::abs(exact[i]));
  }
  return largest;
}

// How far PyTorch in single precision is from itself in double is how far anybody in single precision must be expected
// to be: three times that, and some units in the last place for runs in which PyTorch is lucky.
void require_as_close_as_pytorch(const GoldenFile& file, const std::string& what, const std::vector<double>& ours,
                                 double floor) {
  const std::vector<double> exact = file.doubles(what.substr(0, what.find('/')) + "64" + what.substr(what.find('/')));
  const double theirs = distance_from(exact, widened(file.floats(what)));
  const double our_distance = distance_from(exact, ours);
  INFO(what << ": " << our_distance << " from double precision; PyTorch in single precision " << theirs);
  CHECK(our_distance <= 3.0 * theirs + floor);
}

}  // namespace

TEST_CASE("The golden runs have every optimizer and every switch of each") {
  const GoldenFile file("optimizers");
  REQUIRE(file.header().at("steps") == 50);
  std::set<std::string> types, switches;
  for (const std::string& run : runs_of(file)) {
    const nlohmann::json& options = file.header().at("runs").at(run);
    types.insert(options.at("type"));
    for (const auto& item : options.items()) switches.insert(item.key());
  }
  CHECK(types == std::set<std::string>{"AdamW", "Adam", "SGD", "Adagrad", "Lion", "Lamb", "Muon"});
  for (const char* name :
       {"amsgrad", "bias_correction", "momentum", "dampening", "nesterov", "lr_decay", "initial_accumulator_value",
        "max_coeff", "min_coeff", "eps_inside_sqrt", "muon_lr", "adam_lr", "exclude", "schedule", "clipping"}) {
    INFO(name);
    CHECK(switches.count(name) == 1);
  }
}

TEST_CASE("Losses and norms of 50 steps follow PyTorch's, for every optimizer, at several stages and world sizes") {
  const GoldenFile file("optimizers");
  for (const std::string& run : runs_of(file)) {
    for (const auto& [ranks, stage] : {std::pair{1, 0}, {1, 3}, {2, 1}, {2, 3}, {3, 2}, {4, 0}, {4, 3}}) {
      const Result result = train_golden(file, run, ranks, stage);
      INFO(run << " on " << ranks << " rank(s) at stage " << stage);
      require_as_close_as_pytorch(file, "loss/" + run, result.losses, 2e-7);
      require_as_close_as_pytorch(file, "norm/" + run, result.norms, 1e-6);
    }
  }
}

TEST_CASE("Weights after 50 steps are at most twice as far from a run in double precision as PyTorch's are") {
  const GoldenFile file("optimizers");
  for (const std::string& run : runs_of(file)) {
    const Result result = train_golden(file, run, 1, 2);
    for (const auto& [tensor, values] : result.weights) {
      INFO(run << ", " << tensor);
      const auto skip = key_bias_of(tensor, values.size());
      const Distance ours = distance(values, file.doubles("final64/" + run + "/" + tensor), skip);
      const nlohmann::json& theirs = file.header().at("distance").at(run).at(tensor);
      CHECK(ours.rms <= 2.0 * theirs.at("rms").get<double>() + 1e-8);
    }
  }
}

TEST_CASE("Each switch of an optimizer leads elsewhere: the comparisons can fail") {
  const GoldenFile file("optimizers");
  const std::vector<std::string> runs = runs_of(file);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = i + 1; j < runs.size(); ++j) {
      INFO(runs[i] << " and " << runs[j]);
      CHECK(distance_from(file.doubles("loss64/" + runs[i]), file.doubles("loss64/" + runs[j])) > 1e-3);
    }
  }
}
