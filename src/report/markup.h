// HTML that is also well-formed XML, element by element: what is opened is closed, and every text is escaped.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zt {

// For the content of elements and for the values of attributes. Bytes that are no UTF-8 and control characters become
// U+FFFD.
std::string escaped(std::string_view text);

class Markup {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void open(std::string_view name, Attributes attributes = {});
  void close();  // what was opened last
  void empty(std::string_view name, Attributes attributes = {});
  void text(std::string_view text);
  void element(std::string_view name, Attributes attributes, std::string_view text);
  void line() { out_ += '\n'; }
  // Written as it is: for styles, and for what another Markup has made.
  void raw(std::string_view markup) { out_ += markup; }

  // What was written; every element is closed.
  std::string take();

 private:
  void start(std::string_view name, Attributes attributes);
  std::string out_;
  std::vector<std::string> opened_;
};

}  // namespace zt
