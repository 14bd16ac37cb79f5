// Files of documents, in parts that several threads can take: plain text, a document a file, and JSON lines, a document
// a line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/input_file.h"

namespace zt {

struct DocumentPart {
  std::string_view text;            // of a plain text: a part of it; else whole lines
  bool starts = true, ends = true;  // of a plain text: its first part, its last one
  std::int64_t first_line = 1;      // of JSON lines: the number of the first
};

class DocumentReader {
 public:
  // `text_key`: of JSON lines, which a file is whose name ends in .jsonl or .ndjson (or these with .gz). `key` names
  // the path in errors. UserError as InputFile.
  DocumentReader(const std::string& path, const std::string& key, std::string text_key);

  std::int64_t size() const { return static_cast<std::int64_t>(file_.bytes().size()); }
  const std::string& origin() const { return origin_; }
  bool is_json_lines() const { return is_json_lines_; }
  std::string_view bytes() const { return file_.bytes(); }

  // The next part, of about `part_bytes` or, where a plain text cannot be cut, more; false: there is none left. `cut`
  // gives the largest place <= at where a plain text may be cut, 0: none.
  using Cut = std::function<std::size_t(std::string_view text, std::size_t at)>;
  bool next(std::size_t part_bytes, const Cut& cut, DocumentPart& part);

  // Calls f with each document of JSON lines; lines with nothing on them are none. UserError: the line that is not an
  // object with the text.
  void for_each_line(const DocumentPart& part, const std::function<void(std::string_view text)>& f) const;

 private:
  std::string origin_, text_key_;
  bool is_json_lines_ = false;
  InputFile file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace zt
