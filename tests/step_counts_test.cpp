// A guard against slow decay: what the second step of a run asks of the device and of the other ranks, and what the run
// holds, is compared with tests/step_counts.txt. Times vary from machine to machine, these numbers do not.
//
// Where a change is meant, the file is written anew by   ZEROTRAIN_RECORD_STEP_COUNTS=1 build/tests/step_counts_test
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch_compat.h"
#include "comm/counting.h"
#include "config/resolve.h"
#include "device/counting/counting_device.h"
#include "device/device_decorator.h"
#include "operation_traffic.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

const std::string file = ZEROTRAIN_SOURCE_DIR "/tests/step_counts.txt";

// "gpt bf16, rank 0 of 2, stage 3: matmul flops" -> number
using Numbers = std::map<std::string, std::int64_t>;

class Tally final : public DeviceDecorator {
 public:
  using DeviceDecorator::DeviceDecorator;
  void run(Stream stream, const Operation& operation) override {
    const std::string name(name_of(operation));
    const Traffic traffic = traffic_of(operation);
    ++numbers_[name + " calls"];
    if (const double flops = product_flops(operation); flops > 0.0)
      numbers_[name + " flops"] += static_cast<std::int64_t>(flops);
    numbers_[name + " bytes read"] += traffic.read;
    numbers_[name + " bytes written"] += traffic.written;
    inner().run(stream, operation);
  }
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override {
    numbers_["copy calls"] += 1;
    numbers_["copy bytes"] += bytes;
    inner().copy(stream, to, from, bytes);
  }
  void clear() { numbers_.clear(); }
  const Numbers& numbers() const { return numbers_; }

 private:
  Numbers numbers_;
};

void add_collectives(const CommunicationCounts& before, const CommunicationCounts& after, Numbers& numbers) {
  for (std::size_t kind = 0; kind < collective_kind_count; ++kind) {
    // The agreement on a step is counted as control.
    const auto difference = [&](auto member) {
      return after.training.at(kind).*member - before.training.at(kind).*member + after.control.at(kind).*member -
             before.control.at(kind).*member;
    };
    if (difference(&CollectiveCount::calls) == 0) continue;
    const std::string name(name_of(static_cast<CollectiveKind>(kind)));
    numbers[name + " calls"] = difference(&CollectiveCount::calls);
    numbers[name + " bytes sent"] = difference(&CollectiveCount::bytes);
  }
}

Numbers count(const std::vector<std::string>& sets, int ranks) {
  const ResolvedConfig config = resolve_config({}, sets, ranks);
  // Scratch of kernels depends on the processor.
  CountingDevice device([](const std::vector<Operation>&) { return std::int64_t{0}; }, "counting");
  Tally tally(device);
  CountingCommunicator communicator(0, ranks);
  Session session(config.settings, tally, communicator, nullptr, nullptr);
  session.initialize();
  session.train_step();
  const CommunicationCounts before = communicator.counts();
  tally.clear();
  session.train_step();
  Numbers numbers = tally.numbers();
  add_collectives(before, communicator.counts(), numbers);
  const MemoryByCategory memory = device.ledger().current();
  for (int category = 0; category < memory_category_count; ++category) {
    const auto bytes = memory.at(static_cast<std::size_t>(category));
    if (bytes > 0) numbers["memory " + std::string(name_of(static_cast<MemoryCategory>(category)))] = bytes;
  }
  return numbers;
}

Numbers count_all() {
  // configs/bench/char.json, made smaller.
  const std::vector<std::string> gpt = {"model.type=gpt",        "model.n_layer=3",      "model.n_head=3",
                                        "model.n_embd=96",       "model.n_positions=64", "model.vocab_size=65",
                                        "data.type=synthetic",   "data.task=tokens",     "optimizer.type=AdamW",
                                        "gradient_clipping=1.0", "model.embd_pdrop=0",   "model.resid_pdrop=0",
                                        "model.attn_pdrop=0",    "train_batch_size=8"};
  const std::vector<std::string> mlp = {
      "model.type=mlp",    "model.layers=[512, 512, 1]", "model.activation=identity", "model.bias=false",
      "model.loss=mse",    "data.type=synthetic",        "data.task=regression",      "optimizer.type=SGD",
      "train_batch_size=4"};
  struct Case {
    std::string name;
    std::vector<std::string> sets;
    int ranks;
  };
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, std::vector<std::string> sets, const std::vector<std::string>& more,
                       int ranks) {
    sets.insert(sets.end(), more.begin(), more.end());
    cases.push_back({name, sets, ranks});
  };
  add("mlp fp32", mlp, {}, 1);
  add("mlp fp16", mlp, {"fp16.enabled=true"}, 1);
  add("gpt fp32", gpt, {}, 1);
  add("gpt bf16", gpt, {"bf16.enabled=true"}, 1);
  add("gpt fp16", gpt, {"fp16.enabled=true"}, 1);
  add("gpt bf16 with 2 micro-steps", gpt, {"bf16.enabled=true", "gradient_accumulation_steps=2"}, 1);
  add("gpt fp32 with dropout", gpt, {"model.embd_pdrop=0.1", "model.resid_pdrop=0.1", "model.attn_pdrop=0.1"}, 1);
  for (const char* stage : {"0", "1", "2", "3"}) {
    add("gpt bf16 rank 0 of 2, stage " + std::string(stage), gpt,
        {"bf16.enabled=true", "zero_optimization.stage=" + std::string(stage)}, 2);
  }
  Numbers all;
  for (const Case& one : cases) {
    for (const auto& [what, number] : count(one.sets, one.ranks)) all[one.name + ": " + what] = number;
  }
  return all;
}

Numbers recorded() {
  std::ifstream in(file);
  Numbers numbers;
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.rfind(" = ");
    if (line.starts_with('#') || equals == std::string::npos) continue;
    numbers[line.substr(0, equals)] = std::stoll(line.substr(equals + 3));
  }
  return numbers;
}

void record(const Numbers& numbers) {
  std::ofstream out(file, std::ios::binary);
  out << "# What one step asks for, and what its run holds: tests/step_counts_test.cpp compares and writes this.\n";
  for (const auto& [what, number] : numbers) out << what << " = " << number << "\n";
}

}  // namespace

TEST_CASE("a step asks for no more operations, bytes, messages and memory than are recorded") {
  const Numbers now = count_all();
  const char* asked = std::getenv("ZEROTRAIN_RECORD_STEP_COUNTS");
  if (asked != nullptr && std::string(asked) == "1") record(now);
  const Numbers before = recorded();
  REQUIRE_FALSE(before.empty());
  std::ostringstream differences;
  Numbers both = now;
  both.insert(before.begin(), before.end());
  for (const auto& entry : both) {
    const auto number_in = [&](const Numbers& numbers) {
      const auto found = numbers.find(entry.first);
      return found == numbers.end() ? std::int64_t{0} : found->second;
    };
    const std::int64_t was = number_in(before);
    const std::int64_t is = number_in(now);
    if (was == is) continue;
    differences << (is > was ? "  grew    " : "  shrank  ") << entry.first << ": " << was << " -> " << is << "\n";
  }
  INFO(
      "If that is meant: ZEROTRAIN_RECORD_STEP_COUNTS=1 build/tests/step_counts_test writes tests/step_counts.txt "
      "anew.\n"
      << differences.str());
  CHECK(differences.str().empty());
}
