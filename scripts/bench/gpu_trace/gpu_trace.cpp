// Writes down every kernel, copy and fill of a program that it is loaded into, as a table:
//
//   CUDA_INJECTION64_PATH=.../libgpu_trace.so ZEROTRAIN_GPU_TRACE=trace.csv zerotrain ...
//
// The driver loads it when the program starts to use the GPU. Columns: kind (kernel, copy, fill), context, stream,
// start and end in nanoseconds, name; of a copy the name says between which memories. %p in the file name is the number
// of the process.

#include <cuda.h>
#include <cupti.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;
constexpr std::size_t buffer_alignment = 8;  // CUPTI: ACTIVITY_RECORD_ALIGNMENT

std::FILE* table = nullptr;

void give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *bytes = *buffer == nullptr ? 0 : buffer_bytes;
  *most_records = 0;  // as many as there is room for
}

const char* memory_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "device";
    default: return "other";
  }
}

template <typename Record>
void write(const char* kind, const Record& record, const std::string& name) {
  std::fprintf(table, "%s,%u,%u,%" PRIu64 ",%" PRIu64 ",\"%s\"\n", kind, record.contextId, record.streamId,
               static_cast<std::uint64_t>(record.start), static_cast<std::uint64_t>(record.end), name.c_str());
}

void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (table != nullptr && cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = *reinterpret_cast<const KERNEL_RECORD*>(record);
        write("kernel", kernel, kernel.name == nullptr ? "" : kernel.name);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const COPY_RECORD*>(record);
        write("copy", copy, std::string(memory_name(copy.srcKind)) + " to " + memory_name(copy.dstKind));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        write("fill", *reinterpret_cast<const FILL_RECORD*>(record), "");
        break;
      }
      default: break;
    }
  }
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (table != nullptr) std::fclose(table);
  table = nullptr;
}

bool succeeded(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "gpu_trace: %s: %s; nothing is recorded\n", call, text == nullptr ? "failed" : text);
  return false;
}

}  // namespace

// The driver calls it. Returns 1: the program goes on, recorded or not.
extern "C" int InitializeInjection() {
  const char* const file = std::getenv("ZEROTRAIN_GPU_TRACE");
  std::string name = file == nullptr ? "gpu_trace.csv" : file;
  if (const std::size_t number = name.find("%p"); number != std::string::npos) {
    name.replace(number, 2, std::to_string(getpid()));
  }
  table = std::fopen(name.c_str(), "w");
  if (table == nullptr) {
    std::perror(("gpu_trace: " + name).c_str());
    return 1;
  }
  std::fprintf(table, "kind,context,stream,start,end,name\n");
  if (!succeeded(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks")) return 1;
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (!succeeded(cuptiActivityEnable(kind), "cuptiActivityEnable")) return 1;
  }
  std::atexit(finish);
  return 1;
}
