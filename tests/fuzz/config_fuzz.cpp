// sources: config/difference config/json_reader config/json_scanner config/key_check config/key_suggestions
// sources: config/key_values config/keys config/keys_data config/keys_general config/keys_optimizer config/keys_own
// sources: config/keys_precision config/keys_scheduler config/keys_sections config/keys_zero config/old_forms
// sources: config/optimizer_output config/problems config/resolve config/resolve_batch config/resolve_data
// sources: config/resolve_guards config/resolve_precision config/resolve_pretrained config/resolve_schedule
// sources: config/resolve_training config/resolver config/resolver_output core/dtype core/json core/json_ordered
// sources: core/precision core/spelling optim/schedule
// dictionary: json
#include <cstdlib>

#include "config/resolve.h"
#include "core/errors.h"
#include "input_file.h"

// Any config is refused with a list of mistakes, or is resolved to one that resolves to itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const zt::fuzz::InputFile input(data, size);
  zt::ResolveOptions options;
  options.current_directory = "/";
  try {
    const zt::ResolvedConfig config = zt::resolve_config({input.path()}, {}, 2, options);
    const std::string text = config.json.dump();
    const zt::fuzz::InputFile again(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    if (zt::resolve_config({again.path()}, {}, 2, options).json != config.json) std::abort();
  } catch (const zt::UserError&) {
  } catch (const std::runtime_error& error) {
    // ConfigError: whatever it is derived from, its text is for the user.
    if (std::string(error.what()).empty()) std::abort();
  }
  return 0;
}
