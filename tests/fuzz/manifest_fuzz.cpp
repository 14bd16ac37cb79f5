// sources: checkpoint/manifest checkpoint/json_fields checkpoint/checksum checkpoint/file_access optim/update_gate
// sources: optim/loss_scaler optim/spike_guard core/json core/json_ordered core/json_bounds
// sources: data/message_text
// dictionary: json
#include <cstdlib>

#include "checkpoint/checksum.h"
#include "checkpoint/manifest.h"
#include "core/errors.h"

// Any text, its checksum put right, is refused with a RunError or is a manifest that can be written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const std::size_t end = text.rfind(",\n  \"checksum\""); end != std::string::npos) text.erase(end);
  text += ",\n  \"checksum\": \"" + zt::checksum_text(zt::checksum_of(text)) + "\"\n}\n";
  try {
    const zt::Manifest manifest = zt::parse_manifest(text, "manifest.json");
    const std::string again = zt::manifest_text(manifest);
    if (zt::manifest_text(zt::parse_manifest(again, "again")) != again) std::abort();
  } catch (const zt::RunError&) {
  }
  return 0;
}
