// Finds, opens and checks the shared object of the CUDA backend.
#include <dlfcn.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <vector>

#include "device/gpu/backend.h"

namespace zt {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libzerotrain_cuda.so";
constexpr const char* how_to_build =
    "The backend is built where the CUDA toolkit 13 is, with cmake -DZEROTRAIN_CUDA=ON (docs/gpu.md)";

std::string quoted(const fs::path& path) { return "\"" + path.string() + "\""; }

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The folders to look in. /proc/self/exe is the program's own file, links followed.
std::vector<fs::path> folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path beside = program.parent_path();
  return {beside, (beside / ".." / "lib" / "zerotrain").lexically_normal()};
}

// Why dlopen failed, and what helps.
std::string sentence_of(const fs::path& file, const std::string& error) {
  std::string text = "the CUDA backend " + quoted(file) + " cannot be opened: " + error + ". ";
  if (error.find("cannot open shared object file") != std::string::npos) {
    return text +
           "The library that it names is missing: install the libraries of the CUDA toolkit 13 (cuBLAS), or "
           "add the folder they are in to LD_LIBRARY_PATH";
  }
  return text + "The file may be damaged or belong to another system: build it again. " + how_to_build;
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

struct Opened {
  GpuBackend* backend = nullptr;
  std::string problem;
};

Opened search_and_open() {
  const char* const asked = std::getenv("ZEROTRAIN_CUDA_BACKEND");
  Opened result;
  if (asked != nullptr && *asked != '\0') {
    result.backend = open_gpu_backend_file(asked, &result.problem);
    if (result.backend == nullptr) result.problem += " (ZEROTRAIN_CUDA_BACKEND names this file)";
    return result;
  }
  std::string places;
  for (const fs::path& folder : folders()) {
    if (is_there(folder / file_name)) {
      result.backend = open_gpu_backend_file((folder / file_name).string(), &result.problem);
      return result;
    }
    places += (places.empty() ? "" : " nor in ") + quoted(folder);
  }
  result.problem = std::string("the CUDA backend, ") + file_name + ", is not in " + places + ". " + how_to_build +
                   "; if it is elsewhere, ZEROTRAIN_CUDA_BACKEND names the file";
  return result;
}

}  // namespace

GpuBackend* open_gpu_backend_file(const std::string& file, std::string* problem) {
  // A name without a slash would be looked for in the system's folders.
  const fs::path path = fs::path(file).has_parent_path() ? fs::path(file) : fs::path(".") / file;
  if (!is_there(path)) {
    *problem = "the CUDA backend " + quoted(path) + " is not there. " + how_to_build;
    return nullptr;
  }
  // Of itself alone: its copies of the program's functions and libraries do not mix with the program's. It stays
  // open until the process ends.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    *problem = sentence_of(path, error == nullptr ? "no reason was given" : error);
    return nullptr;
  }
  const auto build = symbol<GpuBackendBuildEntry>(library, gpu_backend_build_symbol);
  const auto entry = symbol<GpuBackendEntry>(library, gpu_backend_symbol);
  if (build == nullptr || entry == nullptr) {
    *problem = quoted(path) + " is not a CUDA backend of zerotrain: it has no function " +
               (build == nullptr ? gpu_backend_build_symbol : gpu_backend_symbol) + ". " + how_to_build;
    return nullptr;
  }
  // The types that pass between the two have one layout only if they were built together.
  if (std::string(build()) != gpu_backend_build()) {
    *problem = "the CUDA backend " + quoted(path) + " belongs to another build: it is \"" + build() +
               "\", this program is \"" + gpu_backend_build() +
               "\". Build and install the program and its backend together";
    return nullptr;
  }
  try {
    return entry();
  } catch (const std::exception& error) {
    *problem = "the CUDA backend " + quoted(path) + " did not start: " + error.what();
    return nullptr;
  }
}

GpuBackend* open_gpu_backend(std::string* problem) {
  static const Opened opened = search_and_open();
  *problem = opened.problem;
  return opened.backend;
}

}  // namespace zt
