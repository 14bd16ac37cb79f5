// What is wrong with a file, place by place: the first few in words, the rest counted.
#pragma once

#include <cstdint>
#include <string>

namespace zt {

class Faults {
 public:
  // One fault; its further lines, if any, are indented by the caller.
  void add(const std::string& text) {
    if (++count_ <= most_shown) text_ += "\n  " + text;
  }
  std::int64_t count() const { return count_; }
  // Each on a line of its own below the sentence that leads to them.
  std::string list() const {
    return count_ > most_shown ? text_ + "\n  and " + std::to_string(count_ - most_shown) + " more" : text_;
  }

 private:
  static constexpr std::int64_t most_shown = 5;
  std::int64_t count_ = 0;
  std::string text_;
};

}  // namespace zt
