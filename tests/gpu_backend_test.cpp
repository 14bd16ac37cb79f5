// Opening a shared object as the CUDA backend: every way in which it is refused, and what passes between the two.
// The objects are made for this test (tests/gpu_backend_objects), so it needs neither CUDA nor a GPU.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"
#include "device/gpu/backend.h"

namespace zt {
namespace {

std::string object(const std::string& name) { return std::string(ZEROTRAIN_BACKEND_OBJECTS) + "/lib" + name + ".so"; }

std::string problem_of(const std::string& file) {
  std::string problem;
  CHECK(open_gpu_backend_file(file, &problem) == nullptr);
  return problem;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a backend that is not there is missed with the way to build it") {
  for (const std::string file : {"/nowhere/libzerotrain_cuda.so", "libzerotrain_cuda_of_nobody.so"}) {
    const std::string problem = problem_of(file);
    INFO(problem);
    CHECK(contains(problem, file));
    CHECK(contains(problem, "is not there"));
    CHECK(contains(problem, "CUDA toolkit 13"));
    CHECK(contains(problem, "-DZEROTRAIN_CUDA=ON"));
  }
}

TEST_CASE("a file that is no shared object is refused with what the loader says") {
  const auto file = std::filesystem::temp_directory_path() / ("zerotrain_no_object_" + std::to_string(getpid()));
  std::ofstream(file) << "this is a text, longer than the header of an object, but no object\n";
  const std::string problem = problem_of(file.string());
  std::filesystem::remove(file);
  INFO(problem);
  CHECK(contains(problem, "cannot be opened: "));
  CHECK(contains(problem, "header"));
  CHECK(contains(problem, "build it again"));
}

TEST_CASE("a library that the backend needs is named when it is missing") {
  const std::string problem = problem_of(object("backend_needing_a_library"));
  INFO(problem);
  CHECK(contains(problem, "libzerotrain_nobody_has_this.so"));
  CHECK(contains(problem, "install the libraries of the CUDA toolkit 13"));
  CHECK(contains(problem, "LD_LIBRARY_PATH"));
}

TEST_CASE("an object without the entries is no backend") {
  CHECK(contains(problem_of(object("backend_without_build")), "it has no function zerotrain_gpu_backend_build"));
  CHECK(contains(problem_of(object("backend_without_entry")), "it has no function zerotrain_gpu_backend."));
}

TEST_CASE("a backend of another build is refused with both builds named") {
  const std::string problem = problem_of(object("backend_of_another_build"));
  INFO(problem);
  CHECK(contains(problem, "it is \"zerotrain 0.0.1, commit 0000000, interface 000000000000\""));
  CHECK(contains(problem, std::string("this program is \"") + gpu_backend_build() + "\""));
}

TEST_CASE("a build is known by version, commit and interface") {
  const std::string build = gpu_backend_build();
  INFO(build);
  CHECK(build.rfind("zerotrain ", 0) == 0);
  CHECK(contains(build, ", commit "));
  const std::size_t interface = build.find(", interface ");
  REQUIRE(interface != std::string::npos);
  CHECK(build.size() == interface + std::string(", interface ").size() + 12);
}

TEST_CASE("a backend whose start fails is refused with its reason") {
  CHECK(contains(problem_of(object("backend_failing")), "did not start: this one never starts"));
}

TEST_CASE("what a backend throws is caught as what it is") {
  std::string problem;
  GpuBackend* const backend = open_gpu_backend_file(object("backend_throwing"), &problem);
  INFO(problem);
  REQUIRE(backend != nullptr);
  const auto text_of = [&]<typename Error>(int index, Error*) {
    try {
      backend->open(index, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(text_of(0, static_cast<UserError*>(nullptr)) == "a UserError");
  CHECK(text_of(1, static_cast<RunError*>(nullptr)) == "a RunError");
  CHECK(text_of(2, static_cast<PeerFailed*>(nullptr)) == "a PeerFailed");
  CHECK(text_of(3, static_cast<std::logic_error*>(nullptr)) == "a logic_error");
  try {
    backend->open(2, {});
  } catch (const PeerFailed& error) {
    CHECK(error.rank == 7);
  }
}

// The last test: open_gpu_backend() remembers.
TEST_CASE("the backend is opened once, whichever threads ask") {
  setenv("ZEROTRAIN_CUDA_BACKEND", object("backend_throwing").c_str(), 1);
  std::vector<GpuBackend*> backends(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(backends.size());
    for (GpuBackend*& backend : backends) {
      threads.emplace_back([&backend] {
        std::string problem;
        backend = open_gpu_backend(&problem);
      });
    }
  }
  REQUIRE(backends.front() != nullptr);
  for (GpuBackend* const backend : backends) CHECK(backend == backends.front());
  setenv("ZEROTRAIN_CUDA_BACKEND", "/nowhere", 1);
  std::string problem = "none";
  CHECK(open_gpu_backend(&problem) == backends.front());
  CHECK(problem.empty());
}

}  // namespace
}  // namespace zt
