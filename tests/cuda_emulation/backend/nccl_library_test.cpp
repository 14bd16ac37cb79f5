// Opening NCCL: what is said where it is missing, is something else, or is too old.
#include <string>

#include "catch_compat.h"
#include "core/errors.h"
#include "device/cuda/nccl_entry.h"
#include "device/cuda/nccl_functions.h"

using namespace zt;

namespace {

std::string what_load_says(const std::string& file) {
  try {
    cuda::load_nccl(file);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("where NCCL is missing, the message says where to get it and how to do without") {
  const std::string text = what_load_says("libnccl-that-is-not-there.so.2");
  CHECK(contains(text,
                 "NCCL, over which GPUs talk to each other, could not be opened: "
                 "libnccl-that-is-not-there.so.2: cannot open shared object file"));
  CHECK(contains(text, "say in ZEROTRAIN_NCCL where its libnccl.so.2 is"));
  CHECK(contains(text, "set device.communicator to \"staged\""));
}

TEST_CASE("a library that is not NCCL, is too old, or lacks a function is refused") {
  CHECK(contains(what_load_says("libm.so.6"), "libm.so.6 is not NCCL: it has no ncclGetVersion."));
  CHECK(contains(what_load_says(ZEROTRAIN_OLD_NCCL),
                 "NCCL 2.19.3 (" ZEROTRAIN_OLD_NCCL ") is too old: 2.26.0 or a later one is needed"));
  CHECK(contains(what_load_says(ZEROTRAIN_INCOMPLETE_NCCL),
                 "NCCL 2.28.9 (" ZEROTRAIN_INCOMPLETE_NCCL ") lacks ncclGetUniqueId."));
}

TEST_CASE("NCCL's version is read from its code, old and new") {
  CHECK(cuda::nccl_version_text(22809) == "2.28.9");
  CHECK(cuda::nccl_version_text(2708) == "2.7.8");
  std::string problem;
  CHECK(cuda::find_nccl(&problem) == cuda::nccl_version_text(NCCL_VERSION_CODE));
  CHECK(problem.empty());
}
