// What the verb evaluate measures a model on.
#pragma once

#include <memory>
#include <string>

#include "data/source.h"

namespace zt {

struct EvaluatedModel {
  std::string name;                      // where it lies, for messages
  std::unique_ptr<Tokenizer> tokenizer;  // that came with it; null: none did
  // Without a tokenizer: the model knows no text. False: it was not said, and that of the data is taken to be the
  // model's own.
  bool tokenizer_is_known = true;
};

struct EvaluatedData {
  std::unique_ptr<Source> windows;  // or rows
  std::unique_ptr<Source> sliding;  // over them
  std::unique_ptr<Tokenizer> tokenizer;
  std::string description;

  const Source& source() const { return sliding ? *sliding : *windows; }
};

// `part`: validation, training, or all (of a running text). `stride`: of windows that overlap; 0: side by side.
// Settings are resolved. UserError.
EvaluatedData open_evaluated_data(const Settings& settings, EvaluatedModel model, const std::string& part,
                                  std::int64_t stride);

}  // namespace zt
