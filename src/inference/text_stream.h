// Text that comes in pieces of bytes, given out as soon as it is certain: whole characters only, and nothing of what
// may become the text that ends it.
#pragma once

#include <string>
#include <string_view>

namespace zt {

class TextStream {
 public:
  // stop: a text at which the stream ends, itself left out; "": none.
  explicit TextStream(std::string stop) : stop_(std::move(stop)) {}

  // What can be shown now. Bytes that are no UTF-8 become U+FFFD, the replacement character.
  std::string add(std::string_view bytes);
  // What was held back; nothing after the stop text.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::string give_out(std::size_t end, bool is_end);

  std::string stop_;
  std::string held_;  // bytes not given out
  bool stopped_ = false;
};

}  // namespace zt
