// Comma-separated values as RFC 4180 has them: fields may stand in double quotes, within which delimiters and line
// breaks are text and a quote is written twice. Lines end with LF, CRLF or CR. A byte order mark is passed over, and so
// are empty lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zt {

class CsvReader {
 public:
  // `text` must outlive the reader. `origin` names the file in errors.
  CsvReader(std::string_view text, char delimiter, std::string origin);

  // Reads the next record; false at the end. Throws UserError with the line where quotes are wrong.
  bool next();
  // Of the record read last: its fields without their quotes, and the line (from 1) on which each starts.
  std::size_t columns() const { return columns_; }
  const std::string& field(std::size_t column) const { return fields_[column]; }
  std::int64_t line(std::size_t column) const { return lines_[column]; }
  bool quoted(std::size_t column) const { return quoted_[column]; }

 private:
  void read_field();
  void read_quoted(std::string& field);
  bool at_line_end() const { return text_[at_] == '\n' || text_[at_] == '\r'; }
  void pass_line_end();
  [[noreturn]] void fail(std::int64_t line, const std::string& what) const;

  std::string_view text_;
  char delimiter_;
  std::string origin_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  // Kept from record to record, so that reading allocates nothing once fields have been as long.
  std::vector<std::string> fields_;
  std::vector<std::int64_t> lines_;
  std::vector<bool> quoted_;
  std::size_t columns_ = 0;
};

}  // namespace zt
