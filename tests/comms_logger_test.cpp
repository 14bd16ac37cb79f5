// comms_logger: the numbers of its table, and what of the collectives it is put around gets into it.
#include "train/comms_logger.h"

#include <sstream>

#include "catch_compat.h"
#include "comm/threads.h"
#include "communicator_checks.h"

namespace zt {
namespace {

using test::PlainDevice;
using test::require;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Compared as words, so that widths of columns are free.
std::string words_of(const std::string& text) {
  std::string words;
  for (const char c : text) {
    if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
  }
  return words;
}

TEST_CASE("rates of collectives: of the message, and of the part of it that crosses a wire") {
  // Four ranks; 1000 bytes in 1 ms, 8 Mbit/s.
  CollectiveSums sums;
  const auto add = [&](CollectiveKind kind, std::int64_t calls, std::int64_t sent) {
    sums[{.kind = kind, .message = 1000}] = {calls, sent, 1e-3 * static_cast<double>(calls)};
  };
  add(CollectiveKind::all_gather, 2, 1500);
  add(CollectiveKind::reduce_scatter, 1, 750);
  add(CollectiveKind::all_reduce, 1, 3000);
  add(CollectiveKind::broadcast, 1, 3000);
  add(CollectiveKind::all_to_all, 1, 600);  // most of it stays with this rank
  const std::string text = words_of(joined(comms_table(sums, 5, {.ranks = 4})));
  INFO(text);
  for (const char* row :
       {"all_gather 1000 2 1500 2.00 ms 1.00 ms 8.00 Mbit/s 6.00 Mbit/s\n",
        "reduce_scatter 1000 1 750 1.00 ms 1.00 ms 8.00 Mbit/s 6.00 Mbit/s\n",
        "all_reduce 1000 1 3000 1.00 ms 1.00 ms 8.00 Mbit/s 12.0 Mbit/s\n",
        "broadcast 1000 1 3000 1.00 ms 1.00 ms 8.00 Mbit/s 8.00 Mbit/s\n",
        "all_to_all 1000 1 600 1.00 ms 1.00 ms 8.00 Mbit/s 4.80 Mbit/s\n", "collectives of 5 step(s) on rank 0"}) {
    INFO(row);
    CHECK(text.find(row) != std::string::npos);
  }
  // A rank alone sends nothing, whatever it is that it does not send.
  for (const auto& [group, sum] : sums) CHECK(bus_bytes(group, sum, 1) == 0.0);
  CHECK(words_of(joined(comms_table({{{.kind = CollectiveKind::all_gather, .message = 1000}, {1, 0, 1e-3}}}, 1, {})))
            .find("all_gather 1000 1 0 1.00 ms 1.00 ms 8.00 Mbit/s -\n") != std::string::npos);
  CHECK(joined(comms_table({}, 3, {})).find("3 step(s) on rank 0 (comms_logger): none") != std::string::npos);
}

TEST_CASE("what a collective is for is told where it is asked for, by the name of its unit") {
  const CollectiveGroup gather = {.kind = CollectiveKind::all_gather,
                                  .activity = Activity::gather,
                                  .pass = Activity::backward,
                                  .unit = 1,
                                  .message = 64};
  const CollectiveGroup sum = {
      .kind = CollectiveKind::all_reduce, .activity = Activity::finish, .pass = Activity::finish, .message = 8};
  const CommsTableContext context = {.ranks = 2, .tells_purpose = true, .units = {"wte", "h.0"}};
  const std::string text = joined(comms_table({{gather, {3, 96, 3e-6}}, {sum, {1, 8, 1e-6}}}, 1, context));
  INFO(text);
  CHECK(text.find("  gather of h.0 in backward\n") != std::string::npos);
  CHECK(text.find("  finish\n") != std::string::npos);
  CHECK(call_line(7, gather, {1, 32, 2e-6}, context) ==
        "step 7  all_gather  message 64 B  sent 32 B  2.00 us  algbw 256 Mbit/s  busbw 128 Mbit/s  gather of h.0 in "
        "backward");
  CHECK(call_line(7, gather, {1, 32, 2e-6}, {.ranks = 2}).find("h.0") == std::string::npos);
}

// Of the rows of a kind in lines of a table: calls and bytes sent.
std::pair<std::int64_t, std::int64_t> total_of(const std::vector<std::string>& table, std::string_view kind) {
  std::int64_t calls = 0, sent = 0;
  for (const std::string& line : table) {
    std::istringstream words(line);
    std::string name;
    std::int64_t message = 0, more_calls = 0, more_sent = 0;
    if (words >> name >> message >> more_calls >> more_sent && name == kind) {
      calls += more_calls;
      sent += more_sent;
    }
  }
  return {calls, sent};
}

TEST_CASE("the collectives of training are logged with the bytes that are counted, and do what they do without") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    REQUIRE_NOTHROW(run_ranks_as_threads(ranks, 0, [](Communicator& c) {
      PlainDevice device;
      CommsLogger logger({.enabled = true}, device, c);
      Communicator& logged = logger.communicator();
      logged.set_purpose(Purpose::control);
      std::vector<std::string> lines;
      for (std::int64_t step = 1; step <= 5; ++step) {
        test::check_all_gather<float>(logged, logger.device(), Stream::gather, 64);  // not of a step
        test::counted_calls(logged, logger.device(), 64);
        logged.set_purpose(Purpose::control);
        require(logger.after_step(step, false).empty(), "lines without verbose");
      }
      lines = logger.finish();
      for (int index = 0; index < collective_kind_count; ++index) {
        const auto kind = static_cast<CollectiveKind>(index);
        const CollectiveCount& count = c.counts().training.at(static_cast<std::size_t>(index));
        require(total_of(lines, name_of(kind)) == std::pair{count.calls, count.bytes},
                "what is logged of " + std::string(name_of(kind)));
      }
      require(total_of(lines, "all_gather").first == 5, "a gather of each step");
      require(total_of(lines, "reduce_scatter").second == 5 * 64 * 6 * (c.size() - 1), "what is sent of two formats");
      // One row a kind and size: gathers, reductions of fp32 and of fp16, blocks to their owners.
      require(lines.size() == 2 + 4, "rows");
    }));
  }
}

TEST_CASE("what of a step is left does not count, and what prof_ops does not name is not logged") {
  REQUIRE_NOTHROW(run_ranks_as_threads(2, 0, [](Communicator& c) {
    PlainDevice device;
    CommsLogger logger({.enabled = true, .verbose = true, .prof_all = false, .prof_ops = {"all_gather_into_tensor"}},
                       device, c);
    Communicator& logged = logger.communicator();
    auto buffer = logged.allocate(device, 2 * 64 * 4, MemoryCategory::parameters, "all");
    const Region region{buffer.get(), 0, 64 * 4};
    const auto gather = [&] {
      logged.wait_until_read(logged.all_gather(device, Stream::gather, region, buffer->view(0, 2 * 64, DType::f32)));
    };
    const auto sum = [&] {
      std::int64_t value = 1;
      logged.all_reduce_sum({&value, 1});
      require(value == 2, "a sum");
    };
    logged.set_purpose(Purpose::training);
    gather();
    sum();
    logged.set_purpose(Purpose::training);  // the step is run again
    gather();
    const std::vector<std::string> first = logger.after_step(1, false);
    require(first.size() == 2 && first[1].find("step 1  all_gather  message 512 B  sent 256 B  ") == 0, "lines");
    logged.set_purpose(Purpose::training);
    gather();
    logged.set_purpose(Purpose::training);
    gather();
    gather();
    require(logger.after_step(2, true).size() == 1, "the run of the step that was not left");
    const std::vector<std::string> table = logger.finish();
    require(total_of(table, "all_gather") == std::pair<std::int64_t, std::int64_t>{3, 3 * 256}, "gathers");
    require(total_of(table, "all_reduce").first == 0, "sums");
    require(table.front().find("collectives of 1 step(s)") == 0, "steps");
  }));
}

TEST_CASE("with debug calls are told apart by activity, also by devices that are watched within") {
  REQUIRE_NOTHROW(run_ranks_as_threads(2, 0, [](Communicator& c) {
    PlainDevice device;
    CommsLogger inner({.enabled = true, .debug = true}, device, c);
    CommsLogger outer({.enabled = true, .debug = true}, inner.device(), inner.communicator());
    Communicator& logged = outer.communicator();
    Device& watched = outer.device();
    auto buffer = logged.allocate(watched, 2 * 64 * 4, MemoryCategory::parameters, "all");
    logged.set_purpose(Purpose::training);
    for (const Activity pass : {Activity::forward, Activity::backward}) {
      const ActivitySpan in_pass(watched, pass, 0);
      const ActivitySpan gathers(watched, Activity::gather, 0);
      logged.wait_until_read(
          logged.all_gather(watched, Stream::gather, {buffer.get(), 0, 64 * 4}, buffer->view(0, 2 * 64, DType::f32)));
    }
    for (CommsLogger* logger : {&outer, &inner}) {
      logger->after_step(1, false);
      const std::string table = joined(logger->finish());
      require(table.find("  gather in forward\n") != std::string::npos, "gathers of the forward pass in " + table);
      require(table.find("  gather in backward\n") != std::string::npos, "gathers of the backward pass in " + table);
    }
  }));
}

}  // namespace
}  // namespace zt
