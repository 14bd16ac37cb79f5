#include "report/text_report.h"

#include <algorithm>

#include "report/svg.h"

namespace zt {

namespace {

// Letters of names may be anything: control characters would reach the terminal.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return width < 4 ? text.substr(0, width) : "..." + text.substr(text.size() - width + 3);
}

void add(std::vector<std::string>& lines, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

// As many columns of the table as fit beside the first, then the next ones below.
std::vector<std::string> part_of_table(const Table& table, const std::vector<std::size_t>& widths, std::size_t first,
                                       std::size_t last) {
  std::vector<std::string> lines;
  const auto row_text = [&](const std::vector<std::string>& cells) {
    std::string text;
    const auto put = [&](std::size_t column) {
      const std::string cell = column < cells.size() ? shortened(printable(cells[column]), widths[column]) : "";
      const std::string blanks(widths[column] - cell.size(), ' ');
      text += column > 0 && table.numbers ? blanks + cell : cell + blanks;
    };
    put(0);
    for (std::size_t column = first; column <= last; ++column) {
      text += "  ";
      put(column);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  lines.push_back(row_text(table.head));
  for (const auto& row : table.rows) lines.push_back(row_text(row));
  return lines;
}

struct BlockText {
  std::vector<std::string>& lines;

  void title(const std::string& text, const std::string& about) const {
    lines.emplace_back();
    lines.push_back(text);
    if (!about.empty()) add(lines, wrapped(about, text_width));
    lines.emplace_back();
  }
  void operator()(const Paragraph& paragraph) const {
    lines.emplace_back();
    add(lines, wrapped(paragraph.text, text_width));
  }
  void operator()(const LinePlot& plot) const {
    title(plot.title, plot.about);
    add(lines, text_lines(plot));
  }
  void operator()(const BarPlot& plot) const {
    title(plot.title, plot.about);
    add(lines, text_lines(plot));
  }
  void operator()(const Table& table) const {
    if (table.folded) return;
    title(table.title, "");
    add(lines, text_lines(table));
  }
  void operator()(const Holdings&) const {}  // is watched; the table beside it is read
  void operator()(const Listing&) const {}   // config.resolved.json can be read as it is
};

}  // namespace

std::vector<std::string> wrapped(const std::string& text, int width, int indent) {
  std::vector<std::string> lines;
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const auto most = static_cast<std::size_t>(width);
  std::string rest = printable(text);
  while (!rest.empty()) {
    if (rest.size() <= most) {
      lines.push_back(margin + rest);
      break;
    }
    std::size_t end = rest.rfind(' ', most);
    if (end == std::string::npos || end == 0) end = most;
    lines.push_back(margin + rest.substr(0, end));
    lines.back().erase(lines.back().find_last_not_of(' ') + 1);
    rest.erase(0, end);
    rest.erase(0, rest.find_first_not_of(' '));
  }
  return lines;
}

std::vector<std::string> text_lines(const Table& table) {
  std::vector<std::size_t> widths(table.head.size(), 0);
  for (std::size_t column = 0; column < widths.size(); ++column) {
    widths[column] = table.head[column].size();
    for (const auto& row : table.rows) {
      if (column < row.size()) widths[column] = std::max(widths[column], row[column].size());
    }
    widths[column] = std::min<std::size_t>(widths[column], column == 0 ? 34 : 42);
  }
  std::vector<std::string> lines;
  for (std::size_t first = 1; first < widths.size();) {
    std::size_t last = first;
    std::size_t width = widths[0] + 2 + widths[first];
    while (last + 1 < widths.size() && width + 2 + widths[last + 1] <= text_width) width += 2 + widths[++last];
    if (first > 1) lines.emplace_back();
    add(lines, part_of_table(table, widths, first, last));
    first = last + 1;
  }
  return lines;
}

std::string text_report(const Contents& contents) {
  std::vector<std::string> lines;
  add(lines, wrapped(contents.title, text_width));
  lines.emplace_back(std::min<std::size_t>(contents.title.size(), text_width), '=');
  for (const std::string& sentence : contents.verdict) {
    lines.emplace_back();
    add(lines, wrapped(sentence, text_width));
  }
  for (const Section& section : contents.sections) {
    lines.emplace_back();
    lines.push_back(section.title);
    lines.emplace_back(section.title.size(), '-');
    for (const Block& block : section.blocks) std::visit(BlockText{lines}, block);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace zt
