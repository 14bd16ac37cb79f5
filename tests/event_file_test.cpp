#include "train/event_file.h"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <limits>
#include <sstream>

#include "catch_compat.h"
#include "core/errors.h"
#include "core/files.h"
#include "event_reader.h"
#include "run_program.h"

namespace {

std::string golden() {
  std::ifstream file(ZEROTRAIN_SOURCE_DIR "/tests/golden/events.tfevents", std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The events of scripts/golden/event_file.py.
std::string written() {
  std::string bytes;
  zt::append_record(bytes, zt::version_event(1700000000.25));
  zt::append_record(bytes, zt::restart_event(1700000000.5, 6));
  zt::append_record(bytes, zt::scalar_event(1700000001.0, 6, "Train/Samples/train_loss", 3.4375));
  zt::append_record(bytes, zt::scalar_event(1700000001.0, 300, "Train/Samples/lr", 1e-3));
  zt::append_record(
      bytes, zt::scalar_event(1700000002.0, (std::int64_t{1} << 40) + 5, "Train/Samples/loss_scale", 4294967296.0));
  zt::append_record(bytes, zt::scalar_event(1700000003.0, 0, "Validation/Samples/loss", 0.0));
  zt::append_record(bytes, zt::scalar_event(0.0, 7, std::string(200, 'a'), -std::numeric_limits<double>::infinity()));
  return bytes;
}

}  // namespace

TEST_CASE("CRC-32C has the values of its specification") {
  CHECK(zt::crc32c("") == 0U);
  CHECK(zt::crc32c("123456789") == 0xE3069283U);
  // RFC 3720, B.4
  CHECK(zt::crc32c(std::string(32, '\0')) == 0x8A9136AAU);
  CHECK(zt::crc32c(std::string(32, '\xFF')) == 0x62A8AB43U);
}

TEST_CASE("events are, byte by byte, those that TensorBoard's package writes") {
  const std::string expected = golden();
  REQUIRE(expected.size() > 400);
  CHECK(written() == expected);
}

TEST_CASE("events read back, and one wrong bit is found") {
  std::string bytes = written();
  const auto events = zt::test::read_events(bytes);
  REQUIRE(events.size() == 7);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[0].wall_time == 1700000000.25);
  CHECK(events[1].restarts);
  CHECK(events[1].step == 6);
  CHECK(events[3].tag == "Train/Samples/lr");
  CHECK(events[3].value == 1e-3F);
  CHECK(events[4].step == (std::int64_t{1} << 40) + 5);
  bytes[100] = static_cast<char>(bytes[100] ^ 4);
  CHECK_THROWS(zt::test::read_events(bytes));
}

TEST_CASE("of records that do not fit on a full disk none stays") {
  const zt::test::TemporaryDirectory folder;
  const std::string path = (folder.path() / "events").string();
  const std::string bytes = written();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  // Beyond it, writing fails as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = bytes.size() + bytes.size() / 2;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  bool failed = false;
  {
    zt::LineFile file(path);
    file.append_whole(bytes);
    try {
      file.append_whole(bytes);
    } catch (const zt::RunError&) {
      failed = true;
    }
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  CHECK(failed);
  CHECK(zt::test::contents_of(path) == bytes);
}
