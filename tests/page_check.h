// A strict reader of pages: what is wrong with one as XML, and by the rules that a reader with other eyes relies on.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zt::testing {

struct PageElement {
  std::string name{};
  std::map<std::string, std::string> attributes{};  // as they stand there
  std::string text{};                               // its own and that of what is in it, as it stands there
};

// Reads the whole page. `problems` stays empty for a page that is well-formed.
class PageReader {
 public:
  explicit PageReader(const std::string& page) : page_(page) {
    const std::string doctype = "<!DOCTYPE html>";
    if (page.compare(0, doctype.size(), doctype) != 0) problem("there is no doctype");
    at_ = std::min(page.size(), doctype.size());
    while (at_ < page_.size()) {
      if (page_[at_] == '<') {
        read_tag();
      } else {
        read_text();
      }
      if (problems.size() > 20) return;
    }
    for (const std::size_t index : open_) problem("<" + elements[index].name + "> is not closed");
  }

  std::vector<PageElement> elements;  // in the order of the page
  std::vector<std::string> problems;

 private:
  void problem(const std::string& what) { problems.push_back(what + " at byte " + std::to_string(at_)); }
  bool ahead(const std::string& text) const { return page_.compare(at_, text.size(), text) == 0; }

  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == ':'; }
  std::string read_name() {
    std::string name;
    while (at_ < page_.size() && is_name(page_[at_])) name += page_[at_++];
    if (name.empty()) problem("a name is missing");
    return name;
  }
  void check_entity() {
    for (const char* known : {"&amp;", "&lt;", "&gt;", "&quot;"}) {
      if (ahead(known)) return;
    }
    problem("a bare ampersand, or an entity that XML does not have");
  }
  void read_text() {
    const std::size_t begin = at_;
    for (; at_ < page_.size() && page_[at_] != '<'; ++at_) {
      const auto byte = static_cast<unsigned char>(page_[at_]);
      if (byte < 0x20 && byte != '\n' && byte != '\t') problem("a control character");
      if (page_[at_] == '&') check_entity();
    }
    for (const std::size_t index : open_) elements[index].text += page_.substr(begin, at_ - begin);
    if (open_.empty() && page_.find_first_not_of(" \n", begin) < at_) problem("text outside of all elements");
  }
  void read_attributes(PageElement& element) {
    while (at_ < page_.size() && page_[at_] == ' ') {
      ++at_;
      const std::string name = read_name();
      if (!ahead("=\"")) return problem("an attribute without a value in quotes");
      at_ += 2;
      const std::size_t begin = at_;
      for (; at_ < page_.size() && page_[at_] != '"'; ++at_) {
        if (page_[at_] == '<') problem("a less-than in an attribute");
        if (page_[at_] == '&') check_entity();
      }
      if (!element.attributes.emplace(name, page_.substr(begin, at_ - begin)).second) problem(name + " is given twice");
      ++at_;
    }
  }
  void read_tag() {
    ++at_;
    if (at_ < page_.size() && page_[at_] == '/') {
      ++at_;
      const std::string name = read_name();
      if (open_.empty() || elements[open_.back()].name != name) {
        problem("</" + name + "> closes " + (open_.empty() ? "nothing" : "<" + elements[open_.back()].name + ">"));
      } else {
        open_.pop_back();
      }
    } else {
      PageElement element{.name = read_name()};
      read_attributes(element);
      elements.push_back(element);
      if (ahead("/>")) {
        ++at_;
      } else {
        open_.push_back(elements.size() - 1);
      }
    }
    if (at_ >= page_.size() || page_[at_] != '>') return problem("a tag does not end");
    ++at_;
  }

  const std::string& page_;
  std::size_t at_ = 0;
  std::vector<std::size_t> open_;
};

// Beyond the form: ids that are there once and wherever something refers to them, a language, one h1 and no heading
// that leaves out a level, pictures with words, headers of tables with a scope, nothing that has to be loaded,
// no more scripts than said.
inline std::vector<std::string> problems_of(const std::string& page, int scripts = 0) {
  const PageReader reader(page);
  std::vector<std::string> problems = reader.problems;
  std::set<std::string> ids;
  for (const PageElement& element : reader.elements) {
    const auto id = element.attributes.find("id");
    if (id != element.attributes.end() && !ids.insert(id->second).second)
      problems.push_back(id->second + " is there twice");
  }
  int level = 0;
  int first_headings = 0;
  const auto has = [](const PageElement& element, const char* name) {
    const auto at = element.attributes.find(name);
    return at != element.attributes.end() && !at->second.empty();
  };
  for (const PageElement& element : reader.elements) {
    for (const char* key : {"href", "aria-labelledby", "aria-describedby"}) {
      const auto at = element.attributes.find(key);
      if (at == element.attributes.end()) continue;
      const bool link = std::string(key) == "href";
      const std::string target = link ? at->second.substr(std::min<std::size_t>(1, at->second.size())) : at->second;
      if ((link && at->second[0] != '#') || !ids.contains(target)) problems.push_back("there is no " + at->second);
    }
    for (const char* key : {"src", "onclick", "onload", "background"}) {
      if (element.attributes.contains(key)) problems.push_back(std::string("attribute ") + key);
    }
    if (element.name == "script" && --scripts < 0) problems.emplace_back("element script");
    for (const char* name : {"link", "iframe", "img", "object", "embed"}) {
      if (element.name == name) problems.push_back("element " + element.name);
    }
    if (element.name == "html" && !has(element, "lang")) problems.emplace_back("no language");
    if (element.name == "svg" && !has(element, "aria-hidden") && element.attributes.contains("role") &&
        !has(element, "aria-label"))
      problems.emplace_back("a picture without words");
    if (element.name == "th" && !has(element, "scope")) problems.emplace_back("a header without scope");
    if (element.name.size() == 2 && element.name[0] == 'h' &&
        std::isdigit(static_cast<unsigned char>(element.name[1])) != 0) {
      const int of_heading = element.name[1] - '0';
      if (of_heading == 1) ++first_headings;
      if (of_heading > level + 1) problems.push_back(element.name + " after h" + std::to_string(level));
      level = of_heading;
    }
  }
  if (first_headings != 1) problems.emplace_back("not one h1");
  for (const char* outside : {"http:", "https:", "@import", "url(\""}) {
    if (page.find(outside) != std::string::npos) problems.push_back(std::string("refers to ") + outside);
  }
  return problems;
}

}  // namespace zt::testing
