#include "data/csv_reader.h"

#include <algorithm>
#include <utility>

#include "core/errors.h"

namespace zt {

CsvReader::CsvReader(std::string_view text, char delimiter, std::string origin)
    : text_(text), delimiter_(delimiter), origin_(std::move(origin)) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
}

void CsvReader::fail(std::int64_t line, const std::string& what) const {
  throw UserError(origin_ + ":" + std::to_string(line) + ": " + what);
}

void CsvReader::pass_line_end() {
  if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
  ++at_;
  ++line_;
}

bool CsvReader::next() {
  columns_ = 0;
  while (at_ < text_.size() && at_line_end()) pass_line_end();
  if (at_ == text_.size()) return false;
  while (true) {
    read_field();
    if (at_ == text_.size()) return true;
    if (at_line_end()) {
      pass_line_end();
      return true;
    }
    ++at_;  // the delimiter
  }
}

void CsvReader::read_field() {
  if (columns_ == fields_.size()) {
    fields_.emplace_back();
    lines_.push_back(0);
    quoted_.push_back(false);
  }
  std::string& field = fields_[columns_];
  field.clear();
  lines_[columns_] = line_;
  quoted_[columns_] = at_ < text_.size() && text_[at_] == '"';
  ++columns_;
  if (quoted_[columns_ - 1]) return read_quoted(field);
  const std::size_t start = at_;
  while (at_ < text_.size() && text_[at_] != delimiter_ && !at_line_end()) {
    if (text_[at_] == '"') {
      fail(line_, "column " + std::to_string(columns_) +
                      " has a quote inside a field that does not start with one: put the whole field in quotes and "
                      "double the inner ones (\"say \"\"yes\"\"\")");
    }
    ++at_;
  }
  field.assign(text_.substr(start, at_ - start));
}

void CsvReader::read_quoted(std::string& field) {
  const std::int64_t opened = line_;
  ++at_;
  while (true) {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n' && text_[end] != '\r') ++end;
    field.append(text_.substr(at_, end - at_));
    at_ = end;
    if (at_ == text_.size()) {
      fail(opened, "the quote that opens column " + std::to_string(columns_) +
                       " is never closed; was the file cut short? A quote inside quotes is written twice");
    }
    if (at_line_end()) {
      const std::size_t start = at_;
      pass_line_end();
      field.append(text_.substr(start, at_ - start));
      continue;
    }
    ++at_;  // a quote
    if (at_ < text_.size() && text_[at_] == '"') {
      field += '"';
      ++at_;
      continue;
    }
    if (at_ < text_.size() && text_[at_] != delimiter_ && !at_line_end()) {
      fail(line_, "column " + std::to_string(columns_) +
                      " goes on after its closing quote; a quote inside quotes is written twice");
    }
    return;
  }
}

}  // namespace zt
