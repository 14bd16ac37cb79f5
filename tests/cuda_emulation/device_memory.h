// Memory of the emulated devices. It is readable only while an operation of its device runs: host code that touches it
// ends with a message. Fresh and freed memory is filled with 0xff, which is NaN in every format.
#pragma once

#include <cstddef>

namespace zt::emulation {

constexpr int max_devices = 8;

// Null if the device has no room. Aligned to 256 bytes, as cudaMalloc's.
void* allocate_device_memory(int device, std::size_t bytes);
bool free_device_memory(int device, void* memory);  // false: not an allocation
std::size_t free_device_bytes(int device);
void release_all_device_memory();

// The device whose memory this is, or -1.
int device_of(const void* pointer);

// How many bytes from `pointer` to the end of its allocation; 0 if it is in none.
std::size_t bytes_behind(const void* pointer);

// For their length the memory is open to the calling code, or closed again while the host's functions run.
class OpenDevice {
 public:
  explicit OpenDevice(int device);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

 private:
  int device_;
};
class ClosedDevice {
 public:
  explicit ClosedDevice(int device);
  ~ClosedDevice();
  ClosedDevice(const ClosedDevice&) = delete;
  ClosedDevice& operator=(const ClosedDevice&) = delete;

 private:
  int device_;
  int before_;
};

}  // namespace zt::emulation
