// sources: data/byte_pair_encoder data/byte_pair_files data/byte_pair_merge data/byte_pair_merge_list
// sources: data/byte_pair_spelled
// sources: data/byte_pair_tiktoken data/byte_pair_tokenizer data/byte_pair_tokenizer_json data/byte_pair_vocabulary
// sources: data/unicode_classes data/tokenizer data/mapped_file data/input_file data/gzip data/file_kind
// sources: data/message_text core/available_memory core/files core/unfinished core/json core/json_bounds
// dictionary: json
// libraries: z icuuc
#include <cstdlib>
#include <memory>

#include "core/errors.h"
#include "data/byte_pair_vocabulary.h"
#include "data/tokenizer.h"

// Any text of a vocabulary is refused with a UserError, or makes a tokenizer that gives a text back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = zt::make_byte_pair_tokenizer(zt::parse_byte_pair_vocabulary(text, "tokenizer.json"));
    const std::string sample = "It's 12 words, \xc3\xa4\xe4\xb8\xad\xff  \n";
    try {
      if (tokenizer->decode(tokenizer->encode(sample)) != sample) std::abort();
    } catch (const zt::UserError&) {  // a byte without a token
    }
    try {  // as a checkpoint keeps it
      const auto again = zt::make_tokenizer(tokenizer->name(), tokenizer->definition());
      if (again->vocabulary_size() != tokenizer->vocabulary_size()) std::abort();
      if (again->definition() != tokenizer->definition()) std::abort();
    } catch (const zt::UserError&) {
      std::abort();
    }
  } catch (const zt::UserError&) {
  }
  return 0;
}
