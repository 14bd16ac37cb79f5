#include "report/html_page.h"

#include "report/svg.h"

namespace zt {

namespace {

void write_cells(Markup& out, const std::vector<std::string>& cells, bool head) {
  out.open("tr");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (head && cells[i].empty()) {
      out.element("td", {}, "");
    } else if (head || i == 0) {
      out.element("th", {{"scope", head ? "col" : "row"}}, cells[i]);
    } else {
      out.element("td", {}, cells[i]);
    }
  }
  out.close();
  out.line();
}

void write_table(Markup& out, const Table& table) {
  if (table.folded) {
    out.open("details");
    out.element("summary", {}, table.title);
  }
  out.open("div", {{"class", "scroll"}, {"role", "region"}, {"aria-label", table.title}, {"tabindex", "0"}});
  out.open("table", {{"class", table.numbers ? "numbers" : "words"}});
  out.element("caption", {{"class", table.folded ? "unseen" : "seen"}}, table.title);
  out.open("thead");
  write_cells(out, table.head, true);
  out.close();
  out.open("tbody");
  for (const auto& row : table.rows) write_cells(out, row, false);
  out.close();
  out.close();
  out.close();
  if (table.folded) out.close();
  out.line();
}

template <typename Plot, typename Write>
void write_figure(Markup& out, const Plot& plot, Write&& write) {
  out.open("figure", {{"id", plot.id}});
  out.open("figcaption");
  out.element("h3", {}, plot.title);
  if (!plot.about.empty()) out.element("p", {}, plot.about);
  out.close();
  out.line();
  write();
  out.close();
  out.line();
}

struct BlockWriter {
  Markup& out;

  void operator()(const Paragraph& paragraph) const {
    out.element("p", {{"class", paragraph.remark ? "remark" : "text"}}, paragraph.text);
    out.line();
  }
  void operator()(const LinePlot& plot) const {
    write_figure(out, plot, [&] {
      write_line_plot(out, plot);
      write_table(out, values_table(plot));
    });
  }
  void operator()(const BarPlot& plot) const {
    write_figure(out, plot, [&] { write_bar_plot(out, plot); });
  }
  void operator()(const Holdings& holdings) const { write_holdings(out, holdings); }
  void operator()(const Table& table) const { write_table(out, table); }
  void operator()(const Listing& listing) const {
    out.open("details");
    out.element("summary", {}, listing.title);
    out.element("pre", {{"tabindex", "0"}, {"role", "region"}, {"aria-label", listing.title}}, listing.text);
    out.close();
    out.line();
  }
};

void write_head(Markup& out, const Contents& contents) {
  out.open("head");
  out.empty("meta", {{"charset", "utf-8"}});
  out.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out.empty("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  out.element("title", {}, contents.title + " - zerotrain");
  out.open("style");
  out.raw(page_style());
  out.close();
  out.close();
  out.line();
}

void write_header(Markup& out, const Contents& contents) {
  out.open("header");
  out.element("p", {{"class", "kind"}}, "zerotrain report");
  out.element("h1", {}, contents.title);
  if (!contents.verdict.empty()) {
    out.open("div", {{"class", "verdict"}});
    for (const std::string& sentence : contents.verdict) out.element("p", {}, sentence);
    out.close();
  }
  out.open("ul", {{"class", "legend runs"}});
  for (std::size_t run = 0; run < contents.runs.size(); ++run) {
    out.open("li");
    write_run_sample(out, run, true);
    out.text(contents.runs[run]);
    out.close();
  }
  out.close();
  out.open("nav", {{"aria-label", "Parts of the report"}});
  out.open("ul");
  for (const Section& section : contents.sections) {
    out.open("li");
    out.element("a", {{"href", "#" + section.id}}, section.title);
    out.close();
  }
  out.close();
  out.close();
  out.close();
  out.line();
}

}  // namespace

std::string html_page(const Contents& contents, const std::string& program) {
  Markup out;
  out.raw("<!DOCTYPE html>\n");
  out.open("html", {{"lang", "en"}});
  write_head(out, contents);
  out.open("body");
  write_definitions(out);
  write_header(out, contents);
  out.open("main");
  for (const Section& section : contents.sections) {
    out.open("section", {{"id", section.id}, {"aria-labelledby", section.id + "-title"}});
    out.element("h2", {{"id", section.id + "-title"}}, section.title);
    out.line();
    out.open("div", {{"class", "blocks"}});
    for (const Block& block : section.blocks) std::visit(BlockWriter{out}, block);
    out.close();
    out.close();
    out.line();
  }
  out.close();
  out.element("footer", {}, "Written by " + program + " from the files that the runs left.");
  out.close();
  out.close();
  out.line();
  return out.take();
}

}  // namespace zt
