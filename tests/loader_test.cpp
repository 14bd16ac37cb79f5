// From samples to micro-batches.
#include "data/loader.h"

#include <algorithm>

#include "data_support.h"

using namespace zt::testing;

namespace {

// Tokens 0, 1, 2 ... of which window k of length 1 holds the single token k.
std::unique_ptr<zt::Source> counting_source(std::int64_t samples) {
  auto tokens = std::make_shared<zt::TokenArray>(samples + 1, samples + 1);
  tokens->visit([](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i);
  });
  return zt::make_window_source(tokens, 0, samples + 1, 1);
}

// The samples of `steps` global batches in the order of the global batch, read by `ranks` ranks that take turns.
std::vector<std::int32_t> read_by_ranks(const zt::Loader& loader, std::int64_t batch, std::int64_t micro,
                                        std::int64_t ranks, std::int64_t steps) {
  std::vector<std::int32_t> read(static_cast<std::size_t>(steps * batch), -1);
  std::vector<zt::MicroBatch> batches(static_cast<std::size_t>(ranks));
  const std::int64_t accumulation = (loader.micro_batches() + ranks - 1) / ranks;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::int64_t valid = 0;
    for (std::int64_t k = 0; k < accumulation; ++k) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        zt::MicroBatch& micro_batch = batches[static_cast<std::size_t>(rank)];
        loader.fill(step * batch, k * ranks + rank, micro_batch);
        valid += micro_batch.valid;
        for (std::int64_t row = 0; row < micro; ++row) {
          const std::int64_t position = micro_batch.first_sample_in_global_batch + row;
          const auto at = static_cast<std::size_t>(row);
          if (micro_batch.valid_rows[at] == 0) {
            REQUIRE(micro_batch.tokens[at] == 0);
            REQUIRE(micro_batch.token_targets[at] == -1);
            continue;
          }
          REQUIRE(position < batch);
          read[static_cast<std::size_t>(step * batch + position)] = micro_batch.tokens[at];
        }
      }
    }
    REQUIRE(valid == loader.valid(step * batch));
  }
  return read;
}

}  // namespace

TEST_CASE("each sample comes exactly once an epoch, at any world size, with the same order") {
  const std::int64_t samples = 101;  // no batch size divides it: batches straddle epochs
  const auto source = counting_source(samples);
  for (const std::int64_t micro : {1, 2, 3, 4}) {
    const std::int64_t batch = 12;
    const std::int64_t steps = 3 * samples / batch + 1;
    const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, micro, batch);
    CHECK(loader.micro_batches() == batch / micro);
    const auto alone = read_by_ranks(loader, batch, micro, 1, steps);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int32_t> part(alone.begin() + epoch * samples, alone.begin() + (epoch + 1) * samples);
      std::ranges::sort(part);
      for (std::int32_t i = 0; i < samples; ++i) REQUIRE(part[static_cast<std::size_t>(i)] == i);
    }
    for (const std::int64_t ranks : {2, 3, 4, 5, 7}) {
      REQUIRE(read_by_ranks(loader, batch, micro, ranks, steps) == alone);
    }
    // Nor does the order of samples depend on how the batch is cut.
    const zt::Loader single(*source, zt::Loader::Order::shuffled, 5, 1, batch);
    REQUIRE(read_by_ranks(single, batch, 1, 1, steps) == alone);
  }
}

TEST_CASE("an epoch shorter than the global batch's rest and a source of one sample work") {
  const auto one = counting_source(1);
  const zt::Loader loader(*one, zt::Loader::Order::shuffled, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(8, 1, batch);
  CHECK(batch.tokens == std::vector<std::int32_t>{0, 0});
  CHECK(batch.valid == 2);
  CHECK(loader.epoch_of(8) == 8);
}

TEST_CASE("the batch at a position is the same however one got there") {
  const auto source = counting_source(50);
  const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, 4, 8);
  zt::MicroBatch walked;
  for (std::int64_t step = 0; step < 20; ++step) loader.fill(step * 8, 1, walked);
  const zt::Loader fresh(*source, zt::Loader::Order::shuffled, 5, 4, 8);
  zt::MicroBatch jumped;
  fresh.fill(19 * 8, 1, jumped);
  CHECK(jumped.tokens == walked.tokens);
  CHECK(jumped.token_targets == walked.token_targets);
}

TEST_CASE("evaluation reads in order and masks what is past the end") {
  auto tokens = std::make_shared<zt::TokenArray>(3 * 5 + 1, 100);
  tokens->visit([](auto& ids) {
    using Id = typename std::remove_reference_t<decltype(ids)>::value_type;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Id>(i + 1);
  });
  const auto source = zt::make_window_source(tokens, 0, tokens->size(), 3);  // five samples
  const zt::Loader loader(*source, zt::Loader::Order::sequential, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(0, 1, batch);
  CHECK(batch.first_sample_in_global_batch == 2);
  CHECK(batch.tokens == std::vector<std::int32_t>{7, 8, 9, 10, 11, 12});
  CHECK(batch.valid == 6);
  CHECK(loader.valid(0) == 12);
  loader.fill(4, 0, batch);
  CHECK(batch.tokens == std::vector<std::int32_t>{13, 14, 15, 0, 0, 0});
  CHECK(batch.token_targets == std::vector<std::int32_t>{14, 15, 16, -1, -1, -1});
  CHECK(batch.valid_rows == std::vector<std::int32_t>{1, 0});
  CHECK(batch.valid == 3);
  CHECK(loader.valid(4) == 3);
  loader.fill(4, 1, batch);
  CHECK(batch.valid == 0);
  CHECK(loader.valid(8) == 0);
}

TEST_CASE("rows of features are masked, too") {
  const auto source = zt::make_synthetic_regression(3, 2, 1, 0, 3);
  const zt::Loader loader(*source, zt::Loader::Order::sequential, 5, 2, 4);
  zt::MicroBatch batch;
  loader.fill(0, 0, batch);
  CHECK(batch.features[5] != 0.0F);
  loader.fill(0, 1, batch);
  CHECK(batch.features.size() == 6);
  CHECK(batch.features[3] == 0.0F);
  CHECK(batch.value_targets[2] == 0.0F);
  CHECK(batch.valid_rows == std::vector<std::int32_t>{1, 0});
  CHECK(batch.valid == 1);
  CHECK(loader.valid(0) == 3);
  CHECK(loader.micro_batch_bytes() == 2 * 4 * (3 + 2 + 1));
}

TEST_CASE("a filled batch keeps its memory when it is filled again") {
  const auto text = counting_source(50);
  const auto rows = zt::make_synthetic_regression(7, 2, 1, 0, 50);
  const auto walks = zt::make_synthetic_tokens(20, 9, 1, 0, 50);
  for (const zt::Source* source : {text.get(), rows.get(), walks.get()}) {
    const zt::Loader loader(*source, zt::Loader::Order::shuffled, 5, 4, 8);
    zt::MicroBatch batch;
    loader.fill(0, 0, batch);
    const auto places = [&] {
      return std::vector<const void*>{batch.tokens.data(), batch.token_targets.data(), batch.features.data(),
                                      batch.value_targets.data(), batch.valid_rows.data()};
    };
    const auto before = places();
    for (std::int64_t step = 1; step < 30; ++step) loader.fill(step * 8, step % 2, batch);
    CHECK(places() == before);
  }
}
